// An interval timer and an alarm interrupt a program that computes under a lock and one that waits for nothing else.
// Prints that both came.
// portent: threads 2
// portent: stdout timer 3, alarm 1
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, alarms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long work;

static void on_tick(int number)
{
    (void)number;
    ticks++;
}

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void *compute(void *unused)
{
    (void)unused;
    while (ticks < 3) {
        pthread_mutex_lock(&lock);
        work++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGVTALRM, &tick, NULL);
    struct itimerval timer = {.it_interval = {.tv_usec = 10000}, .it_value = {.tv_usec = 10000}};
    assert(setitimer(ITIMER_VIRTUAL, &timer, NULL) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, compute, NULL) == 0);
    pthread_join(thread, NULL);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){0}, NULL);
    assert(ticks >= 3);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    alarm(1);
    while (alarms == 0)
        pause();
    printf("timer 3, alarm %d\n", (int)alarms);
    return 0;
}
