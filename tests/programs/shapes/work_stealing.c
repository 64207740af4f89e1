// The work-stealing queue of Cilk (THE): the owner takes from the tail, a thief from the head.
// Buggy: the owner looks at the head before it has said what it takes.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int head, tail;
static atomic_int taken[3];

static void take_item(int at) {
    assert(atomic_fetch_add(&taken[at], 1) == 0);
}

static void put(void) {
    int at = atomic_load(&tail);
    atomic_store(&tail, at + 1);
}

static void pop(void) {
#ifdef FIXED
    int at = atomic_load(&tail) - 1;
    atomic_store(&tail, at);
    if (atomic_load(&head) <= at) {
        take_item(at);
        return;
    }
    // Perhaps a thief was there.
    atomic_store(&tail, at + 1);
    pthread_mutex_lock(&lock);
    if (atomic_load(&head) <= at) {
        atomic_store(&tail, at);
        take_item(at);
    }
    pthread_mutex_unlock(&lock);
#else
    int at = atomic_load(&tail) - 1;
    if (atomic_load(&head) <= at) {
        atomic_store(&tail, at);
        take_item(at);
    }
#endif
}

static void *steal(void *arg) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        int at = atomic_load(&head);
        atomic_store(&head, at + 1);
        if (at + 1 <= atomic_load(&tail))
            take_item(at);
        else
            atomic_store(&head, at);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *own(void *arg) {
    put();
    put();
    pop();
    pop();
    return arg;
}

int main(void) {
    pthread_t a, b;
    atomic_store(&head, 0);
    atomic_store(&tail, 0);
    for (int i = 0; i < 3; i++) atomic_store(&taken[i], 0);
    pthread_create(&a, 0, own, 0);
    pthread_create(&b, 0, steal, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
