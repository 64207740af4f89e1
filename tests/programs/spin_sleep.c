// A thread polls a flag with short sleeps, and another with a deadline by the clock; a third sets the flag late.
// Prints that the flag was seen, and that the deadline passed.
// portent: threads 3
// portent: stdout seen, deadline passed
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static atomic_int flag;

static void *sets(void *unused)
{
    (void)unused;
    usleep(20000);
    flag = 1;
    return NULL;
}

static void *polls(void *unused)
{
    (void)unused;
    while (!flag)
        usleep(100);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, polls, NULL) == 0);
    assert(pthread_create(&b, NULL, sets, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    // No event but the question for the time.
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec < 20000000);
    puts("seen, deadline passed");
    return 0;
}
