// A counter whose accessors each take the lock, and a loop that reads, adds and writes: updates are lost, though there is no race.
// Prints 4 in nearly every native run; a schedule makes it less.
// portent: threads 3
// portent: variable counter
// portent: stdout counter *
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static int get(void)
{
    pthread_mutex_lock(&lock);
    int value = counter;
    pthread_mutex_unlock(&lock);
    return value;
}

static void set(int value)
{
    pthread_mutex_lock(&lock);
    counter = value;
    pthread_mutex_unlock(&lock);
}

static void *count(void *unused)
{
    for (int i = 0; i < 2; i++)
        set(get() + 1);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, count, NULL) == 0);
    assert(pthread_create(&b, NULL, count, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("counter %d\n", counter);
    return 0;
}
