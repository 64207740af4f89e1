// One thread reads numbers from standard input, with scanf and with read; another sums them under a lock.
// Prints the sum and what was left.
// portent: threads 2
// portent: stdin 1 2 3 4 5 6 7 8 9 10 end
// portent: stdout sum 55, then end
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int number;
static sem_t given, taken;
static int sum;

static void *sums(void *unused)
{
    (void)unused;
    for (;;) {
        sem_wait(&given);
        if (number < 0)
            return NULL;
        sum += number;
        sem_post(&taken);
    }
}

int main(void)
{
    pthread_t thread;
    sem_init(&given, 0, 0);
    sem_init(&taken, 0, 0);
    assert(pthread_create(&thread, NULL, sums, NULL) == 0);
    char word[16], byte;
    while (scanf("%d", &number) == 1) {
        sem_post(&given);
        sem_wait(&taken);
    }
    number = -1;
    sem_post(&given);
    pthread_join(thread, NULL);
    assert(scanf("%15s", word) == 1);
    assert(read(STDIN_FILENO, &byte, 1) == 0);
    printf("sum %d, then %s\n", sum, word);
    return 0;
}
