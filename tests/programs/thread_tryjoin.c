// Joins that do not wait for ever: one that finds the thread busy, one that times out, and then both that succeed.
// Prints what each said.
// portent: threads 3
// portent: stdout busy, timed out, joined, joined
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static sem_t go;

static void *waits(void *unused)
{
    (void)unused;
    sem_wait(&go);
    return NULL;
}

static struct timespec in_milliseconds(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

int main(void)
{
    pthread_t first, second;
    sem_init(&go, 0, 0);
    assert(pthread_create(&first, NULL, waits, NULL) == 0);
    assert(pthread_create(&second, NULL, waits, NULL) == 0);
    assert(pthread_tryjoin_np(first, NULL) == EBUSY);
    printf("busy, ");
    struct timespec soon = in_milliseconds(20);
    assert(pthread_timedjoin_np(first, NULL, &soon) == ETIMEDOUT);
    printf("timed out, ");
    sem_post(&go);
    sem_post(&go);
    struct timespec late = in_milliseconds(20000);
    assert(pthread_timedjoin_np(first, NULL, &late) == 0);
    printf("joined, ");
    while (pthread_tryjoin_np(second, NULL) == EBUSY)
        sched_yield();
    printf("joined\n");
    return 0;
}
