// A program without threads, but with accesses and a lock.
// Prints its result, and Portent says that there is nothing concurrent in it.
// portent: threads 1
// portent: ops acq 10
// portent: message thread
// portent: stdout 10
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

int main(void)
{
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    printf("%d\n", counter);
    return 0;
}
