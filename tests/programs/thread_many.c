// 200 short threads, 50 alive at a time: stacks and thread ids of the system are used again, numbers in the trace are not.
// Prints how often the counter was raised.
// portent: threads 201
// portent: ops fork 200
// portent: ops join 200
// portent: stdout 200
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *raise_it(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    for (int wave = 0; wave < 4; wave++) {
        pthread_t threads[50];
        for (int i = 0; i < 50; i++)
            assert(pthread_create(&threads[i], NULL, raise_it, NULL) == 0);
        for (int i = 0; i < 50; i++)
            assert(pthread_join(threads[i], NULL) == 0);
    }
    printf("%d\n", count);
    return 0;
}
