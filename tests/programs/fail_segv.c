// A thread follows a null pointer while others work.
// The program dies by SIGSEGV, after what it had flushed; the trace is whole up to there.
// portent: signal SEGV
// portent: threads 3
// portent: stdout before
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int *nothing;
static int counter;

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        counter++;
    return NULL;
}

static void *crashes(void *unused)
{
    (void)unused;
    *nothing = 1;
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    puts("before");
    fflush(stdout);
    assert(pthread_create(&a, NULL, counts, NULL) == 0);
    pthread_join(a, NULL);
    assert(pthread_create(&b, NULL, crashes, NULL) == 0);
    pthread_join(b, NULL);
    puts("after");
    return 0;
}
