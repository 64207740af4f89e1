// Threads wait for an eventfd, a timerfd and a signalfd, which others or the clock make ready.
// Prints what was read.
// portent: threads 2
// portent: stdout event 7, timer 1, signal USR1
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int event;

static void *makes_ready(void *unused)
{
    (void)unused;
    uint64_t seven = 7;
    assert(write(event, &seven, sizeof seven) == sizeof seven);
    kill(getpid(), SIGUSR1);
    return NULL;
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    event = eventfd(0, 0);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), signals = signalfd(-1, &set, 0);
    struct itimerspec soon = {.it_value = {.tv_nsec = 10000000}};
    assert(timerfd_settime(timer, 0, &soon, NULL) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, makes_ready, NULL) == 0);
    uint64_t value, times;
    struct signalfd_siginfo info;
    assert(read(event, &value, sizeof value) == sizeof value);
    assert(read(timer, &times, sizeof times) == sizeof times);
    assert(read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
    pthread_join(thread, NULL);
    printf("event %d, timer %d, signal USR1\n", (int)value, (int)times);
    return 0;
}
