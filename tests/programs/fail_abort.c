// A thread calls abort while it holds a lock.
// The program dies by SIGABRT; in the trace the lock is still held.
// portent: signal ABRT
// portent: threads 2
// portent: ops acq 1
// portent: ops rel 0
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *aborts(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    abort();
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, aborts, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
