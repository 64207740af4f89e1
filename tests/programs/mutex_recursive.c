// A recursive mutex is taken up to four times by the same thread before it is given back.
// Prints the exact sum; the mutex is busy for others until the outermost unlock.
// portent: threads 3
// portent: ops acq 80
// portent: ops rel 80
// portent: stdout 80
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock;
static int counter;

static void nested(int depth)
{
    if (depth == 0)
        return;
    assert(pthread_mutex_lock(&lock) == 0);
    counter++;
    nested(depth - 1);
    assert(pthread_mutex_unlock(&lock) == 0);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++)
        nested(4);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_t a, b;
    assert(pthread_create(&a, NULL, work, NULL) == 0);
    assert(pthread_create(&b, NULL, work, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", counter);
    return 0;
}
