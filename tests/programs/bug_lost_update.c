// Two threads raise a counter without a lock: an update can get lost.
// Prints 2 in nearly every native run; a schedule makes it 1.
// portent: threads 3
// portent: variable counter
// portent: stdout counter *
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *raise_it(void *unused)
{
    counter++;
    return unused;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, raise_it, NULL) == 0);
    assert(pthread_create(&b, NULL, raise_it, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("counter %d\n", counter);
    return 0;
}
