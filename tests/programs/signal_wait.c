// A thread of its own takes signals with sigwait and sigtimedwait, while they are blocked everywhere else.
// Prints what it got, in order.
// portent: threads 2
// portent: stdout got USR1, got USR2, then nothing in time
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static sigset_t set;
static sem_t next;

static void *takes(void *unused)
{
    (void)unused;
    int number;
    assert(sigwait(&set, &number) == 0 && number == SIGUSR1);
    printf("got USR1, ");
    sem_post(&next);
    assert(sigwaitinfo(&set, NULL) == SIGUSR2);
    printf("got USR2, ");
    struct timespec soon = {.tv_nsec = 10000000};
    assert(sigtimedwait(&set, NULL, &soon) == -1 && errno == EAGAIN);
    puts("then nothing in time");
    return NULL;
}

int main(void)
{
    sem_init(&next, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, takes, NULL) == 0);
    kill(getpid(), SIGUSR1);
    sem_wait(&next);
    assert(pthread_kill(thread, SIGUSR2) == 0);
    pthread_join(thread, NULL);
    return 0;
}
