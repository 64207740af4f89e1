// Four threads are sure to sleep on a condition before main wakes all of them by one broadcast.
// Prints how many woke.
// portent: threads 5
// portent: ops slp 4+
// portent: ops wak 4+
// portent: ops nta 1
// portent: stdout 4 woke
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t start = PTHREAD_COND_INITIALIZER, ready = PTHREAD_COND_INITIALIZER;
static int waiting, started, woke;

static void *waits(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    waiting++;
    pthread_cond_signal(&ready);
    while (!started)
        pthread_cond_wait(&start, &lock);
    woke++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, waits, NULL) == 0);
    pthread_mutex_lock(&lock);
    while (waiting < 4)
        pthread_cond_wait(&ready, &lock);
    started = 1;
    pthread_cond_broadcast(&start);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%d woke\n", woke);
    return 0;
}
