// pthread_once by four threads, with an initialiser that itself takes a lock, and a second once inside the first.
// Prints how often the initialisers ran, and that everybody saw what they made.
// portent: threads 5
// portent: ops onceb 2
// portent: ops oncee 2
// portent: ops oncep 7
// portent: stdout ran 1 and 1, seen 4 times
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int outer_ran, inner_ran, made, seen;

static void make_inner(void)
{
    inner_ran++;
}

static void make_outer(void)
{
    pthread_once(&inner, make_inner);
    pthread_mutex_lock(&lock);
    outer_ran++;
    made = 42;
    pthread_mutex_unlock(&lock);
}

static void *use(void *unused)
{
    (void)unused;
    assert(pthread_once(&outer, make_outer) == 0);
    assert(made == 42);
    assert(pthread_once(&inner, make_inner) == 0);
    pthread_mutex_lock(&lock);
    seen++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, use, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("ran %d and %d, seen %d times\n", outer_ran, inner_ran, seen);
    return 0;
}
