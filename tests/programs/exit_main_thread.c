// Main ends by pthread_exit; the process lives until the last thread ends, and its status is 0.
// Prints from two threads that outlive main, one after the other.
// portent: exit 0
// portent: threads 3
// portent: stdout outlived main
// portent: stdout outlived both
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_t first, second;
static int told;

static void *outlives_main(void *unused)
{
    assert(pthread_join(first, NULL) == 0);
    puts("outlived main");
    told = 1;
    return unused;
}

static void *outlives_both(void *unused)
{
    assert(pthread_join(second, NULL) == 0);
    assert(told);
    puts("outlived both");
    return unused;
}

int main(void)
{
    pthread_t third;
    first = pthread_self();
    assert(pthread_create(&second, NULL, outlives_main, NULL) == 0);
    assert(pthread_create(&third, NULL, outlives_both, NULL) == 0);
    pthread_exit(NULL);
}
