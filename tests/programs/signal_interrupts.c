// A handler without SA_RESTART interrupts a sleep, a read and a semaphore wait: each comes back with EINTR.
// Prints which were interrupted.
// portent: threads 2
// portent: stdout sleep EINTR, read EINTR, semaphore EINTR
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static sem_t never;
static atomic_int stage;

static void nothing(int number)
{
    (void)number;
}

static void *blocks(void *unused)
{
    (void)unused;
    char byte;
    struct timespec long_time = {.tv_sec = 1000};
    // However long, it may be over before the signal comes.
    while (nanosleep(&long_time, NULL) == 0)
        ;
    assert(errno == EINTR);
    printf("sleep EINTR, ");
    stage = 1;
    assert(read(ends[0], &byte, 1) == -1 && errno == EINTR);
    printf("read EINTR, ");
    stage = 2;
    assert(sem_wait(&never) == -1 && errno == EINTR);
    puts("semaphore EINTR");
    stage = 3;
    return NULL;
}

int main(void)
{
    assert(pipe(ends) == 0);
    sem_init(&never, 0, 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = nothing}, NULL);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, blocks, NULL) == 0);
    // A signal that comes between two waits interrupts nothing: go on until all three were.
    while (stage < 3) {
        usleep(10000);
        if (stage < 3)
            pthread_kill(thread, SIGUSR1);
    }
    pthread_join(thread, NULL);
    return 0;
}
