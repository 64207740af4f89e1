// A block is freed by one thread and its address handed out again to another: a new variable, not a race with the old one.
// Freed memory is kept for a while when recorded, so the blocks are so large that not all of them can be.
// Prints that addresses were used again.
// portent: threads 3
// portent: stdout used again, 20 rounds
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t seen[40];
static int count, again;

static void *work(void *argument)
{
    for (int i = 0; i < 10; i++) {
        int *block = malloc(32 << 20);
        *block = i + *(int *)argument;
        pthread_mutex_lock(&lock);
        for (int k = 0; k < count; k++)
            again += seen[k] == (uintptr_t)block;
        seen[count++] = (uintptr_t)block;
        pthread_mutex_unlock(&lock);
        assert(*block == i + *(int *)argument);
        free(block);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    int one = 100, two = 200;
    assert(pthread_create(&a, NULL, work, &one) == 0);
    assert(pthread_create(&b, NULL, work, &two) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%s, %d rounds\n", again ? "used again" : "all different", count);
    return 0;
}
