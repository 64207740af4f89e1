/* A small shop: one bug of every kind. The trace beside it, shop.std, is a run in which nothing went wrong. */
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int balance, hits;

static void *deposit(void *unused) {
    pthread_mutex_lock(&m);
    int seen = balance;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    balance = seen + 5;
    pthread_mutex_unlock(&m);
    hits = 1;
    pthread_mutex_lock(&l);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&l);
    pthread_cond_wait(&c, &m);
    return unused;
}

static void *audit(void *unused) {
    pthread_mutex_lock(&m);
    balance = 7;
    pthread_mutex_lock(&l);
    pthread_mutex_unlock(&l);
    pthread_mutex_unlock(&m);
    hits = 2;
    pthread_cond_signal(&c);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, audit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return balance;
}
