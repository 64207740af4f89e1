// Two threads raise a counter under a lock for ever, or for as many rounds as the argument says.
// Prints its process id first, so that a test can kill it, and the count at the end.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter, rounds;

static void *raises(void *unused)
{
    for (long i = 0; i < rounds || rounds == 0; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 0;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, raises, NULL) == 0);
    raises(NULL);
    pthread_join(thread, NULL);
    printf("counted %ld\n", counter);
    return 0;
}
