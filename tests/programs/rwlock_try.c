// Tries of a read-write lock, each with both outcomes: reading beside a reader works, anything beside a writer does not.
// Prints the outcomes.
// portent: threads 3
// portent: ops busys 1
// portent: ops busy 2
// portent: stdout beside a reader: read yes, write no; beside a writer: read no, write no
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t held, enough;

static void *holds(void *write)
{
    assert((write ? pthread_rwlock_trywrlock : pthread_rwlock_tryrdlock)(&lock) == 0);
    sem_post(&held);
    sem_wait(&enough);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    sem_init(&held, 0, 0);
    sem_init(&enough, 0, 0);
    assert(pthread_create(&thread, NULL, holds, NULL) == 0);
    sem_wait(&held);
    assert(pthread_rwlock_tryrdlock(&lock) == 0);
    assert(pthread_rwlock_unlock(&lock) == 0);
    assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
    sem_post(&enough);
    pthread_join(thread, NULL);
    printf("beside a reader: read yes, write no; ");
    assert(pthread_create(&thread, NULL, holds, &lock) == 0);
    sem_wait(&held);
    assert(pthread_rwlock_tryrdlock(&lock) == EBUSY);
    assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
    sem_post(&enough);
    pthread_join(thread, NULL);
    puts("beside a writer: read no, write no");
    return 0;
}
