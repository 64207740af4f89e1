// A transfer between two accounts is marked as atomic, and is not: the lock is given back between the two.
// The marks are events of the trace, by the names that the program gives; nothing else changes.
// portent: threads 3
// portent: ops begin 3
// portent: ops end 3
// portent: stdout 20 80
#include <assert.h>
#include <portent.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int from = 100, to;

static void add(int *account, int amount)
{
    pthread_mutex_lock(&lock);
    *account += amount;
    pthread_mutex_unlock(&lock);
}

static void *transfer(void *amount)
{
    portent_atomic_begin("transfer");
    add(&from, -*(int *)amount);
    add(&to, *(int *)amount);
    portent_atomic_end("transfer");
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    int first = 30, second = 50;
    assert(pthread_create(&a, NULL, transfer, &first) == 0);
    assert(pthread_create(&b, NULL, transfer, &second) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    portent_atomic_begin("balances");
    printf("%d %d\n", from, to);
    portent_atomic_end("balances");
    return 0;
}
