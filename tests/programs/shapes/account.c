// An account: two deposits and a withdrawal. Buggy: the balance is read and written under the lock, each by itself.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static int get(void) {
    pthread_mutex_lock(&lock);
    int is = balance;
    pthread_mutex_unlock(&lock);
    return is;
}

static void set(int to) {
    pthread_mutex_lock(&lock);
    balance = to;
    pthread_mutex_unlock(&lock);
}

static void *deposit(void *amount) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
    balance += (int)(long)amount;
    pthread_mutex_unlock(&lock);
#else
    set(get() + (int)(long)amount);
#endif
    return 0;
}

int main(void) {
    pthread_t threads[3];
    long amounts[] = {100, 10, -5};
    set(0);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, deposit, (void *)amounts[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    assert(get() == 105);
    return 0;
}
