// A stack in an array: one pushes two, one pops two. Buggy: the place for an item and the item are two steps.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int items[4], top;

static void *push(void *arg) {
    for (int i = 1; i <= 2; i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
#endif
        int at = atomic_fetch_add(&top, 1);
        atomic_store(&items[at], i);
#ifdef FIXED
        pthread_mutex_unlock(&lock);
#endif
    }
    return arg;
}

static void *pop(void *arg) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        int there = atomic_load(&top);
        if (there > 0) {
            assert(atomic_load(&items[there - 1]) != 0);
            atomic_store(&items[there - 1], 0);
            atomic_store(&top, there - 1);
        }
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

int main(void) {
    pthread_t a, b;
    for (int i = 0; i < 4; i++) atomic_store(&items[i], 0);
    atomic_store(&top, 0);
    pthread_create(&a, 0, push, 0);
    pthread_create(&b, 0, pop, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
