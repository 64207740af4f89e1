// One thread takes the signals, as in many servers and tools, another one waits to be told that all is done.
// A schedule in which the second is to be told too early waits for the first, which only main could wake.
// portent: stdout done
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int finished;
static sigset_t signals;

static void *takes_signals(void *unused) {
    int number;
    sigwait(&signals, &number);
    return unused;
}

static void *terminator(void *unused) {
    pthread_mutex_lock(&lock);
    while (!finished)
        pthread_cond_wait(&told, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *works(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t handler, waiter, worker;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    pthread_create(&handler, NULL, takes_signals, NULL);
    pthread_create(&waiter, NULL, terminator, NULL);
    pthread_create(&worker, NULL, works, NULL);
    pthread_join(worker, NULL);
    pthread_mutex_lock(&lock);
    finished = 1;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&lock);
    pthread_join(waiter, NULL);
    pthread_kill(handler, SIGUSR1);
    pthread_join(handler, NULL);
    puts("done");
}
