// Threads are detached: by attribute, by their maker and by themselves. Main learns of their end by a semaphore only.
// Prints how many came.
// portent: threads 4
// portent: ops fork 3
// portent: ops join 0
// portent: stdout 3 came
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t came;

static void *come(void *detach_self)
{
    if (detach_self)
        assert(pthread_detach(pthread_self()) == 0);
    sem_post(&came);
    return NULL;
}

int main(void)
{
    sem_init(&came, 0, 0);
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    assert(pthread_create(&thread, &detached, come, NULL) == 0);
    pthread_attr_destroy(&detached);
    assert(pthread_create(&thread, NULL, come, NULL) == 0);
    assert(pthread_detach(thread) == 0);
    assert(pthread_create(&thread, NULL, come, &came) == 0);
    for (int i = 0; i < 3; i++)
        sem_wait(&came);
    puts("3 came");
    return 0;
}
