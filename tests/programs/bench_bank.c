// Bench: four threads transfer between 64 accounts, with a lock per account; nearly everything is locks.
// Prints the total, which no transfer changes. The argument is how many transfers each thread makes.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ACCOUNTS = 64 };

struct account {
    pthread_mutex_t lock;
    long balance;
};

static struct account accounts[ACCOUNTS];
static long transfers;

static unsigned next(unsigned *state)
{
    *state = *state * 1103515245 + 12345;
    return *state >> 16;
}

static void *work(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument + 1;
    for (long i = 0; i < transfers; i++) {
        unsigned from = next(&state) % ACCOUNTS, to = (from + 1 + next(&state) % (ACCOUNTS - 1)) % ACCOUNTS;
        struct account *first = &accounts[from < to ? from : to], *second = &accounts[from < to ? to : from];
        pthread_mutex_lock(&first->lock);
        pthread_mutex_lock(&second->lock);
        accounts[from].balance -= 10;
        accounts[to].balance += 10;
        pthread_mutex_unlock(&second->lock);
        pthread_mutex_unlock(&first->lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    transfers = argc > 1 ? atol(argv[1]) : 1000000;
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = 1000;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long total = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        total += accounts[i].balance;
    printf("total %ld\n", total);
    return 0;
}
