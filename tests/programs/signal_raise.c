// Handlers run by raise, by kill of the own process and by pthread_kill of a busy and of a blocked thread.
// Prints how often each ran.
// portent: threads 3
// portent: stdout raised 3, killed 1, in the busy thread 1, in the blocked thread 1
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int raised, killed, in_busy, in_blocked;
static pthread_t busy, blocked;
static sem_t ready, go;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    if (number == SIGUSR1)
        raised++;
    else if (number == SIGTERM)
        killed++;
    else if (pthread_equal(pthread_self(), busy))
        in_busy++;
    else if (pthread_equal(pthread_self(), blocked))
        in_blocked++;
}

static void *is_busy(void *unused)
{
    (void)unused;
    sem_post(&ready);
    while (in_busy == 0)
        sched_yield();
    return NULL;
}

static void *is_blocked(void *unused)
{
    (void)unused;
    sem_post(&ready);
    while (sem_wait(&go) != 0)
        ;
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    for (int i = 0; i < 3; i++)
        assert(raise(SIGUSR1) == 0);
    kill(getpid(), SIGTERM);
    assert(pthread_create(&busy, NULL, is_busy, NULL) == 0);
    assert(pthread_create(&blocked, NULL, is_blocked, NULL) == 0);
    sem_wait(&ready);
    sem_wait(&ready);
    assert(pthread_kill(busy, SIGUSR2) == 0);
    pthread_join(busy, NULL);
    assert(pthread_kill(blocked, SIGUSR2) == 0);
    while (in_blocked == 0)
        usleep(1000);
    sem_post(&go);
    pthread_join(blocked, NULL);
    printf("raised %d, killed %d, in the busy thread %d, in the blocked thread %d\n", raised, killed, in_busy, in_blocked);
    return 0;
}
