// Three threads serve requests until they are stopped, or as many as the argument says. Now and then one counts a request without the
// lock: a race.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long served, rare, rounds;

static void serve(long number)
{
    pthread_mutex_lock(&lock);
    served++;
    pthread_mutex_unlock(&lock);
    if (number % 10 == 7)
        rare++;
}

static void *serves(void *unused)
{
    for (long i = 0; i < rounds || rounds == 0; i++) {
        serve(i);
        usleep(1000);
    }
    return unused;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 0;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, serves, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("served %ld\n", served);
    return 0;
}
