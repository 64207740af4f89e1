// A normal mutex, static and initialised by call, guards a counter that three threads raise.
// Prints the exact sum.
// portent: threads 4
// portent: ops acq 600
// portent: ops rel 600
// portent: lock lock
// portent: variable counter
// portent: stdout 300 300
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second;
static int counter, other;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        assert(pthread_mutex_lock(&lock) == 0);
        counter++;
        assert(pthread_mutex_unlock(&lock) == 0);
        assert(pthread_mutex_lock(&second) == 0);
        other++;
        assert(pthread_mutex_unlock(&second) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    assert(pthread_mutex_init(&second, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(pthread_mutex_destroy(&second) == 0);
    printf("%d %d\n", counter, other);
    return 0;
}
