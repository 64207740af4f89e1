// A barrier of three threads, five rounds; in each round exactly one thread is told that it is the serial one.
// Prints the rounds; all writes of a round are seen after it.
// portent: threads 4
// portent: ops arr 15
// portent: ops dep 15
// portent: stdout 5 rounds, 5 serial threads
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int at[3], serial;

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;
    for (int round = 1; round <= 5; round++) {
        at[me] = round;
        int result = pthread_barrier_wait(&barrier);
        assert(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
        pthread_mutex_lock(&lock);
        serial += result == PTHREAD_BARRIER_SERIAL_THREAD;
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < 3; i++)
            assert(__atomic_load_n(&at[i], __ATOMIC_RELAXED) >= round);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    pthread_barrier_init(&barrier, NULL, 3);
    for (intptr_t i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    printf("%d rounds, %d serial threads\n", at[0], serial);
    return 0;
}
