// Threads sleep in every way there is, for different times; the clock agrees that at least that time went by.
// Prints that nobody woke early.
// portent: threads 6
// portent: stdout nobody woke early
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *sleeps(void *argument)
{
    int how = (int)(intptr_t)argument;
    long long start = now();
    struct timespec time = {.tv_nsec = 30000000};
    switch (how) {
    case 0: assert(nanosleep(&time, NULL) == 0); break;
    case 1: assert(usleep(30000) == 0); break;
    case 2: assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0); break;
    case 3:
        time.tv_sec = (start + 30000000) / 1000000000;
        time.tv_nsec = (start + 30000000) % 1000000000;
        assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == 0);
        break;
    case 4: assert(sleep(1) == 0); break;
    }
    assert(now() - start >= 30000000);
    return NULL;
}

int main(void)
{
    pthread_t threads[5];
    for (intptr_t i = 0; i < 5; i++)
        assert(pthread_create(&threads[i], NULL, sleeps, (void *)i) == 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    puts("nobody woke early");
    return 0;
}
