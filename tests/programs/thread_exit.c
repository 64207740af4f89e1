// A thread ends by pthread_exit in a nested call, another by returning; a lock is free again in between.
// Prints both results.
// portent: threads 3
// portent: stdout exited 7, returned 8
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void leave(intptr_t value)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_exit((void *)value);
}

static void *exits(void *unused)
{
    (void)unused;
    leave(7);
    return NULL;
}

static void *returns(void *unused)
{
    (void)unused;
    return (void *)8;
}

int main(void)
{
    pthread_t first, second;
    void *a, *b;
    assert(pthread_create(&first, NULL, exits, NULL) == 0);
    assert(pthread_create(&second, NULL, returns, NULL) == 0);
    assert(pthread_join(first, &a) == 0);
    assert(pthread_join(second, &b) == 0);
    printf("exited %ld, returned %ld\n", (long)(intptr_t)a, (long)(intptr_t)b);
    return 0;
}
