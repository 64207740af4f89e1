// A thread waits on a condition without asking whether what it waits for has already happened; it has.
// Always hangs; Portent reports who sleeps on what.
// portent: deadlock ready
// portent: threads 2
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static void *waits(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    assert(pthread_create(&thread, NULL, waits, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
