// Two transfers between two accounts take the accounts' locks in opposite orders.
// Ends in nearly every native run; a schedule makes it deadlock.
// portent: threads 3
// portent: lock accounts[0].lock
// portent: lock accounts[1].lock
// portent: stdout 110 90
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account accounts[2] = {
    {PTHREAD_MUTEX_INITIALIZER, 100},
    {PTHREAD_MUTEX_INITIALIZER, 100},
};

static void transfer(struct account *from, struct account *to, int amount)
{
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *forth(void *unused)
{
    transfer(&accounts[0], &accounts[1], 20);
    return unused;
}

static void *back(void *unused)
{
    transfer(&accounts[1], &accounts[0], 30);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, forth, NULL) == 0);
    assert(pthread_create(&b, NULL, back, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d %d\n", accounts[0].balance, accounts[1].balance);
    return 0;
}
