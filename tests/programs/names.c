// Globals, file statics, static locals, struct fields, array elements and nested ones are shared under a named lock.
// Prints a total; the trace calls things by their names.
// portent: threads 3
// portent: lock bank.lock
// portent: variable total
// portent: variable *calls
// portent: variable bank.balance
// portent: variable bank.owner.age
// portent: variable accounts[2].balance
// portent: variable matrix[1][2]
// portent: variable history[3]
// portent: stdout total 20
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct owner {
    int age;
    char letter;
};
struct bank {
    pthread_mutex_t lock;
    long balance;
    struct owner owner;
};

int total;
static struct bank bank = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct {
    int number;
    double balance;
} accounts[4];
static short matrix[2][3];
static int history[10];
static int *heap;

static void deposit(void)
{
    static int calls;
    calls++;
    total++;
    bank.balance++;
    bank.owner.age++;
    bank.owner.letter = 'x';
    accounts[2].balance += 1.5;
    matrix[1][2]++;
    history[3]++;
    heap[7]++;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&bank.lock);
        deposit();
        pthread_mutex_unlock(&bank.lock);
    }
    return NULL;
}

int main(void)
{
    heap = calloc(10, sizeof *heap);
    pthread_t a, b;
    assert(pthread_create(&a, NULL, work, NULL) == 0);
    assert(pthread_create(&b, NULL, work, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(heap[7] == 20 && matrix[1][2] == 20 && history[3] == 20 && accounts[2].balance == 30.0);
    free(heap);
    printf("total %d\n", total);
    return 0;
}
