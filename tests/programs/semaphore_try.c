// sem_trywait with both outcomes, sem_timedwait and sem_clockwait that time out and that succeed.
// Prints the outcomes.
// portent: threads 2
// portent: ops semf 3
// portent: ops semt 3
// portent: stdout try failed, timed out twice, then passed three times
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static sem_t semaphore;

static void *posts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++)
        sem_post(&semaphore);
    return NULL;
}

static struct timespec after(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    long long ns = t.tv_nsec + ms * 1000000LL;
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}

int main(void)
{
    sem_init(&semaphore, 0, 0);
    assert(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    struct timespec t = after(CLOCK_REALTIME, 5);
    assert(sem_timedwait(&semaphore, &t) == -1 && errno == ETIMEDOUT);
    t = after(CLOCK_MONOTONIC, 5);
    assert(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &t) == -1 && errno == ETIMEDOUT);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, posts, NULL) == 0);
    t = after(CLOCK_REALTIME, 20000);
    assert(sem_timedwait(&semaphore, &t) == 0);
    t = after(CLOCK_MONOTONIC, 20000);
    assert(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &t) == 0);
    pthread_join(thread, NULL);
    assert(sem_trywait(&semaphore) == 0);
    puts("try failed, timed out twice, then passed three times");
    return 0;
}
