// A barrier of three to which only two threads come, while a third waits for a semaphore that nobody posts.
// Always hangs; Portent reports all of them.
// portent: deadlock barrier semaphore
// portent: threads 4
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_barrier_t barrier;
static sem_t semaphore;

static void *comes(void *unused)
{
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *waits(void *unused)
{
    sem_wait(&semaphore);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_barrier_init(&barrier, NULL, 3);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, i < 2 ? comes : waits, NULL) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
