// Six threads transfer between accounts with a lock each, audit under a read-write lock, count atomically, in rounds with a barrier.
// Prints the total, which no transfer changes. The argument is the number of rounds.
// portent: args 16
// portent: threads 7
// portent: stdout total 8000, transfers 1920, rounds 16, audits right
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 6, ACCOUNTS = 8, TRANSFERS = 20 };

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account accounts[ACCOUNTS];
static pthread_rwlock_t books = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t round_end;
static atomic_int transfers;
static atomic_uint wrong;
static int rounds, rounds_done;

static unsigned next(unsigned *state)
{
    *state = *state * 1103515245 + 12345;
    return *state >> 16;
}

static void transfer(unsigned from, unsigned to, int amount)
{
    // The lower account first, so that no cycle is possible.
    struct account *first = &accounts[from < to ? from : to], *second = &accounts[from < to ? to : from];
    pthread_mutex_lock(&first->lock);
    if (pthread_mutex_trylock(&second->lock) != 0)
        pthread_mutex_lock(&second->lock);
    if (accounts[from].balance >= amount) {
        accounts[from].balance -= amount;
        accounts[to].balance += amount;
    }
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static int total(void)
{
    int sum = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        sum += accounts[i].balance;
    return sum;
}

static void *work(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument + 1;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < TRANSFERS; i++) {
            unsigned from = next(&state) % ACCOUNTS, to = (from + 1 + next(&state) % (ACCOUNTS - 1)) % ACCOUNTS;
            pthread_rwlock_rdlock(&books);
            transfer(from, to, (int)(next(&state) % 100));
            pthread_rwlock_unlock(&books);
            atomic_fetch_add_explicit(&transfers, 1, memory_order_relaxed);
        }
        pthread_rwlock_wrlock(&books);
        if (total() != ACCOUNTS * 1000)
            wrong++;
        pthread_rwlock_unlock(&books);
        if (pthread_barrier_wait(&round_end) == PTHREAD_BARRIER_SERIAL_THREAD)
            rounds_done++;
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 16;
    pthread_barrier_init(&round_end, NULL, THREADS);
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = 1000;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    printf("total %d, transfers %d, rounds %d, audits %s\n", total(), transfers, rounds_done, wrong ? "wrong" : "right");
    return 0;
}
