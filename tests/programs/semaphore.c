// A counting semaphore lets at most two of four threads in; another, of count 0, hands results over.
// Prints the most threads that were inside at once, which never passes two.
// portent: threads 5
// portent: ops semi 2
// portent: ops semw 44
// portent: ops post 44
// portent: stdout at most 2 inside, value 2 at the end
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t room, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside, most;

static void *visit(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        assert(sem_wait(&room) == 0);
        pthread_mutex_lock(&lock);
        if (++inside > most)
            most = inside;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        inside--;
        pthread_mutex_unlock(&lock);
        assert(sem_post(&room) == 0);
    }
    sem_post(&done);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    assert(sem_init(&room, 0, 2) == 0);
    assert(sem_init(&done, 0, 0) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, visit, NULL) == 0);
    for (int i = 0; i < 4; i++)
        sem_wait(&done);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    int value;
    assert(sem_getvalue(&room, &value) == 0);
    assert(most <= 2);
    printf("at most 2 inside, value %d at the end\n", value);
    sem_destroy(&room);
    sem_destroy(&done);
    return 0;
}
