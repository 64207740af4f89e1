// Timed locks, by both clocks: they time out while another thread holds the mutex, and succeed afterwards.
// Prints what each said.
// portent: threads 2
// portent: ops busy 2+
// portent: stdout timed out, timed out, taken, taken
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, enough;

static void *holds(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    sem_post(&held);
    sem_wait(&enough);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct timespec in_milliseconds(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

int main(void)
{
    pthread_t thread;
    sem_init(&held, 0, 0);
    sem_init(&enough, 0, 0);
    assert(pthread_create(&thread, NULL, holds, NULL) == 0);
    sem_wait(&held);
    struct timespec soon = in_milliseconds(CLOCK_REALTIME, 10);
    assert(pthread_mutex_timedlock(&lock, &soon) == ETIMEDOUT);
    soon = in_milliseconds(CLOCK_MONOTONIC, 10);
    assert(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    sem_post(&enough);
    struct timespec late = in_milliseconds(CLOCK_REALTIME, 20000);
    assert(pthread_mutex_timedlock(&lock, &late) == 0);
    pthread_mutex_unlock(&lock);
    late = in_milliseconds(CLOCK_MONOTONIC, 20000);
    assert(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &late) == 0);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    puts("timed out, timed out, taken, taken");
    return 0;
}
