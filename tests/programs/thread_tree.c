// Threads make threads, which make threads: 1 + 3 + 9. Who is whose child must not depend on the schedule.
// Prints the sum over the leaves.
// portent: threads 13
// portent: ops fork 12
// portent: stdout leaves 9, sum 108
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int leaves, sum;

static void *grow(void *argument)
{
    int place = (int)(intptr_t)argument;
    if (place >= 4) {
        pthread_mutex_lock(&lock);
        leaves++;
        sum += place + 4;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    pthread_t child[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&child[i], NULL, grow, (void *)(intptr_t)(place * 3 + i + 1)) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(child[i], NULL) == 0);
    return NULL;
}

int main(void)
{
    grow(0);
    printf("leaves %d, sum %d\n", leaves, sum);
    return 0;
}
