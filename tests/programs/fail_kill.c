// The program kills itself with SIGKILL in the middle of its work.
// It dies by SIGKILL; the trace is valid and has all that was done until then.
// portent: signal KILL
// portent: threads 2
// portent: ops acq 100
// portent: ops rel 100
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *works(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    kill(getpid(), SIGKILL);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, works, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
