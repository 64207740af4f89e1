// Threads are named, by themselves and by main; the last name counts.
// Prints the names the system knows; the trace has them too.
// portent: threads 3
// portent: thread T1:reader
// portent: thread T2:writer
// portent: stdout reader writer
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t named, done;

static void *names_itself(void *unused)
{
    (void)unused;
    assert(pthread_setname_np(pthread_self(), "reader") == 0);
    sem_post(&named);
    sem_wait(&done);
    return NULL;
}

static void *is_named(void *unused)
{
    (void)unused;
    assert(pthread_setname_np(pthread_self(), "nobody") == 0);
    sem_post(&named);
    sem_wait(&done);
    return NULL;
}

int main(void)
{
    pthread_t first, second;
    char a[16], b[16];
    sem_init(&named, 0, 0);
    sem_init(&done, 0, 0);
    assert(pthread_create(&first, NULL, names_itself, NULL) == 0);
    assert(pthread_create(&second, NULL, is_named, NULL) == 0);
    sem_wait(&named);
    sem_wait(&named);
    assert(pthread_setname_np(second, "writer") == 0);
    pthread_getname_np(first, a, sizeof a);
    pthread_getname_np(second, b, sizeof b);
    printf("%s %s\n", a, b);
    sem_post(&done);
    sem_post(&done);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
