// Timed read and write locks, by both clocks: they time out beside a writer and are taken when it has gone.
// Prints the outcomes.
// portent: threads 2
// portent: stdout 4 timed out, 4 taken
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t held, enough;
static int timed_out, taken;

static void *holds(void *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&lock);
    sem_post(&held);
    sem_wait(&enough);
    pthread_rwlock_unlock(&lock);
    return NULL;
}

static void outcome(int result)
{
    if (result == 0) {
        taken++;
        pthread_rwlock_unlock(&lock);
    } else {
        assert(result == ETIMEDOUT);
        timed_out++;
    }
}

static struct timespec after(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    long long ns = t.tv_nsec + ms * 1000000LL;
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}

static void try_all(long ms)
{
    struct timespec t = after(CLOCK_REALTIME, ms);
    outcome(pthread_rwlock_timedrdlock(&lock, &t));
    t = after(CLOCK_REALTIME, ms);
    outcome(pthread_rwlock_timedwrlock(&lock, &t));
    t = after(CLOCK_MONOTONIC, ms);
    outcome(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &t));
    t = after(CLOCK_MONOTONIC, ms);
    outcome(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &t));
}

int main(void)
{
    pthread_t thread;
    sem_init(&held, 0, 0);
    sem_init(&enough, 0, 0);
    assert(pthread_create(&thread, NULL, holds, NULL) == 0);
    sem_wait(&held);
    try_all(5);
    sem_post(&enough);
    try_all(20000);
    pthread_join(thread, NULL);
    printf("%d timed out, %d taken\n", timed_out, taken);
    return 0;
}
