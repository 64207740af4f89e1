// Main returns while a detached thread computes for ever without a single event, and another is in a read that never ends.
// Prints what main knew.
// portent: exit 0
// portent: threads 3
// portent: stdout main returns
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t ready;
static int ends[2];

static void *computes(void *unused)
{
    (void)unused;
    sem_post(&ready);
    for (;;)
        __asm__ volatile("pause");
    return NULL;
}

static void *reads(void *unused)
{
    (void)unused;
    char byte;
    sem_post(&ready);
    assert(read(ends[0], &byte, 1) == 1);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    sem_init(&ready, 0, 0);
    assert(pipe(ends) == 0);
    assert(pthread_create(&a, NULL, reads, NULL) == 0);
    sem_wait(&ready);
    assert(pthread_create(&b, NULL, computes, NULL) == 0);
    sem_wait(&ready);
    puts("main returns");
    return 0;
}
