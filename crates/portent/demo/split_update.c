/* A split update
 * Every access is locked, so there is no race; but a withdrawal reads and writes in two steps.
 * A withdrawal that comes between the two is overwritten, and the bank has given money away.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int get(void) {
    pthread_mutex_lock(&lock);
    int money = balance;
    pthread_mutex_unlock(&lock);
    return money;
}

static void set(int money) {
    pthread_mutex_lock(&lock);
    balance = money;
    pthread_mutex_unlock(&lock);
}

static void withdraw(int amount) {
    int money = get();
    set(money - amount); /* what if the balance is another by now? */
}

static void *customer(void *unused) {
    withdraw(30);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, customer, NULL);
    pthread_create(&b, NULL, customer, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    int left = balance;
    printf("balance: %d\n", left);
    assert(left == 40);
    return 0;
}
