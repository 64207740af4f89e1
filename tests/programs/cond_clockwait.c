// Condition waits by the monotonic clock: by attribute, and by pthread_cond_clockwait. Both time out, then both are signalled.
// Prints the outcomes.
// portent: threads 2
// portent: stdout 2 timed out, 2 signalled
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t monotonic, plain = PTHREAD_COND_INITIALIZER;
static int ready;

static struct timespec after(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long ns = t.tv_nsec + ms * 1000000LL;
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}

static void *signals(void *unused)
{
    (void)unused;
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&lock);
        ready = i;
        pthread_cond_broadcast(&monotonic);
        pthread_cond_broadcast(&plain);
        while (ready)
            pthread_cond_wait(&plain, &lock);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &attributes);
    pthread_mutex_lock(&lock);
    struct timespec t = after(10);
    while (pthread_cond_timedwait(&monotonic, &lock, &t) != ETIMEDOUT)
        ;
    t = after(10);
    while (pthread_cond_clockwait(&plain, &lock, CLOCK_MONOTONIC, &t) != ETIMEDOUT)
        ;
    printf("2 timed out, ");
    pthread_t thread;
    assert(pthread_create(&thread, NULL, signals, NULL) == 0);
    t = after(20000);
    while (ready != 1)
        assert(pthread_cond_timedwait(&monotonic, &lock, &t) == 0);
    ready = 0;
    pthread_cond_signal(&plain);
    while (ready != 2)
        assert(pthread_cond_clockwait(&plain, &lock, CLOCK_MONOTONIC, &t) == 0);
    ready = 0;
    pthread_cond_signal(&plain);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    puts("2 signalled");
    pthread_cond_destroy(&monotonic);
    return 0;
}
