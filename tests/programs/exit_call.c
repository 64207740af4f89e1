// A thread calls exit while main waits for it and another thread sleeps on a condition; handlers run in reverse order.
// Prints the handlers; the exit status is the thread's.
// portent: exit 7
// portent: threads 3
// portent: stdout second handler
// portent: stdout first handler
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void first(void) { puts("first handler"); }
static void second(void) { puts("second handler"); }

static void *sleeps(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return NULL;
}

static void *exits(void *unused)
{
    (void)unused;
    exit(7);
}

int main(void)
{
    pthread_t a, b;
    atexit(first);
    atexit(second);
    assert(pthread_create(&a, NULL, sleeps, NULL) == 0);
    assert(pthread_create(&b, NULL, exits, NULL) == 0);
    pthread_join(b, NULL);
    return 0;
}
