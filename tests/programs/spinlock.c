// A pthread spin lock guards a counter; a try finds it busy, another finds it free.
// Prints the exact sum.
// portent: threads 4
// portent: ops acq 301
// portent: ops try 2
// portent: ops busy 1
// portent: stdout 300
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_spinlock_t lock;
static int counter;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_spin_lock(&lock);
        counter++;
        pthread_spin_unlock(&lock);
    }
    return NULL;
}

static void *tries(void *unused)
{
    (void)unused;
    assert(pthread_spin_trylock(&lock) == EBUSY);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&lock);
    assert(pthread_create(&threads[0], NULL, tries, NULL) == 0);
    pthread_join(threads[0], NULL);
    pthread_spin_unlock(&lock);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    work(NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert(pthread_spin_trylock(&lock) == 0);
        pthread_spin_unlock(&lock);
    }
    pthread_spin_destroy(&lock);
    printf("%d\n", counter);
    return 0;
}
