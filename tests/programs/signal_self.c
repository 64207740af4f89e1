// Sends itself signals while the thread that handles them has them blocked: sigsuspend lets each in once.
// Every handler runs once for each signal, in the recorded run and wherever a replay begins to go its own way.
// portent: stdout handled 3 of 3
// portent: threads 2
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static int sent;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void count(int signal)
{
    (void)signal;
    handled++;
}

static void *send_all(void *unused)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        sent++;
        pthread_mutex_unlock(&lock);
        kill(getpid(), SIGUSR1);
        // One at a time: a second signal of the same number would not be kept.
        while (handled <= i)
            usleep(1000);
    }
    return unused;
}

int main(void)
{
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &before);
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, send_all, NULL);
    while (handled < 3)
        sigsuspend(&before);
    pthread_join(thread, NULL);
    // Nothing is left that was not handled.
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    printf("handled %d of %d\n", (int)handled, sent);
    return 0;
}
