// A bounded queue with two conditions, two producers and two consumers.
// Prints the sum of all items.
// portent: threads 5
// portent: stdout 80 items, sum 3160
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { ROOM = 4, EACH = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], first, length;
static int items, sum;

static void *produce(void *argument)
{
    int start = (int)(intptr_t)argument;
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&lock);
        while (length == ROOM)
            pthread_cond_wait(&not_full, &lock);
        queue[(first + length++) % ROOM] = start + i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consume(void *unused)
{
    (void)unused;
    for (int i = 0; i < EACH; i++) {
        pthread_mutex_lock(&lock);
        while (length == 0)
            pthread_cond_wait(&not_empty, &lock);
        sum += queue[first];
        items++;
        first = (first + 1) % ROOM;
        length--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, i < 2 ? produce : consume, (void *)(intptr_t)(i * EACH)) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%d items, sum %d\n", items, sum);
    return 0;
}
