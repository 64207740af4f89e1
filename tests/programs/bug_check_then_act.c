// Every access is under a lock, but the lock is given back between the check of a balance and the withdrawal.
// Prints 0 in nearly every native run; another order makes it -50.
// portent: threads 3
// portent: variable balance
// portent: stdout balance *
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 50;

static int enough(int amount)
{
    pthread_mutex_lock(&lock);
    int result = balance >= amount;
    pthread_mutex_unlock(&lock);
    return result;
}

static void *withdraw(void *unused)
{
    if (enough(50)) {
        pthread_mutex_lock(&lock);
        balance -= 50;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, withdraw, NULL) == 0);
    assert(pthread_create(&b, NULL, withdraw, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("balance %d\n", balance);
    return 0;
}
