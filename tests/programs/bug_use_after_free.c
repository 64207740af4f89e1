// A worker says that it is done, and then touches its session once more; main frees the session as soon as it hears.
// Ends quietly in nearly every native run; in some orders the session is used after it was freed.
// portent: threads 2
// portent: stdout done
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
    int requests;
};

static struct session *session;
static sem_t done;

static void *serves(void *unused)
{
    session->requests = 1;
    sem_post(&done);
    session->requests++;
    return unused;
}

int main(void)
{
    pthread_t worker;
    sem_init(&done, 0, 0);
    session = calloc(1, sizeof *session);
    assert(pthread_create(&worker, NULL, serves, NULL) == 0);
    sem_wait(&done);
    free(session);
    pthread_join(worker, NULL);
    puts("done");
    return 0;
}
