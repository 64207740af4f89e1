// Reorder: all but one of N threads set a, then b; the last sees b without a. Buggy: nothing keeps a and b together.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int a, b;

static void *set(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    atomic_store(&a, 1);
    atomic_store(&b, -1);
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return arg;
}

static void *check(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int first = atomic_load(&a), second = atomic_load(&b);
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    assert((first == 0 && second == 0) || (first == 1 && second == -1));
    return arg;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 3;
    pthread_t all[32];
    (void)lock;
    atomic_store(&a, 0);
    atomic_store(&b, 0);
    for (int i = 0; i + 1 < threads; i++) pthread_create(&all[i], 0, set, 0);
    pthread_create(&all[threads - 1], 0, check, 0);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    return 0;
}
