// A thread takes a normal mutex that it already holds.
// Always hangs; Portent reports that the thread waits for itself.
// portent: deadlock lock
// portent: threads 2
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *relocks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, relocks, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
