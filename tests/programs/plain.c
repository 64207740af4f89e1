// A program that was built without instrumentation.
// Runs as always, and Portent says that it was not built for recording; there is no trace.
// portent: uninstrumented
// portent: exit 4
// portent: message portent cc
// portent: stdout counted 200
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, counts, NULL) == 0);
    counts(NULL);
    pthread_join(thread, NULL);
    printf("counted %d\n", counted);
    return 4;
}
