// trylock with both outcomes, sure to happen: busy while another thread holds the mutex, taken when it is free.
// Prints both; the failed tries are in the trace.
// portent: threads 2
// portent: ops busy 3
// portent: ops try 2
// portent: stdout busy, then taken
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, enough;

static void *holds(void *unused)
{
    (void)unused;
    assert(pthread_mutex_trylock(&lock) == 0);
    sem_post(&held);
    sem_wait(&enough);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    sem_init(&held, 0, 0);
    sem_init(&enough, 0, 0);
    assert(pthread_create(&thread, NULL, holds, NULL) == 0);
    sem_wait(&held);
    for (int i = 0; i < 3; i++)
        assert(pthread_mutex_trylock(&lock) == EBUSY);
    sem_post(&enough);
    pthread_join(thread, NULL);
    assert(pthread_mutex_trylock(&lock) == 0);
    pthread_mutex_unlock(&lock);
    puts("busy, then taken");
    return 0;
}
