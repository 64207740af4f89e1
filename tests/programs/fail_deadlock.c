// Two threads take two locks in opposite orders, and a barrier makes sure that each has its first before it wants its second.
// Always deadlocks; Portent reports who waits for whom.
// portent: deadlock left right
// portent: threads 3
// portent: stdout about to deadlock
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void take(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *left_right(void *unused)
{
    take(&left, &right);
    return unused;
}

static void *right_left(void *unused)
{
    take(&right, &left);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    puts("about to deadlock");
    fflush(stdout);
    pthread_barrier_init(&both, NULL, 2);
    assert(pthread_create(&a, NULL, left_right, NULL) == 0);
    assert(pthread_create(&b, NULL, right_left, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
