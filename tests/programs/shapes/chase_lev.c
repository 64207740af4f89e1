// The deque of Chase and Lev: the owner at the bottom, thieves at the top, without locks.
// Buggy: the last item is taken from the bottom without a compare-exchange.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int top, bottom, items[4], taken[4];

static void push(int item) {
    int at = atomic_load(&bottom);
    atomic_store(&items[at % 4], item);
    atomic_store(&bottom, at + 1);
}

static void got(int item) {
    assert(atomic_fetch_add(&taken[item], 1) == 0);
}

static void take(void) {
    int at = atomic_load(&bottom) - 1;
    atomic_store(&bottom, at);
    int from = atomic_load(&top);
    if (from > at) {
        atomic_store(&bottom, from);
        return;
    }
    int item = atomic_load(&items[at % 4]);
    if (from == at) {
#ifdef FIXED
        int won = atomic_compare_exchange_strong(&top, &from, from + 1);
        atomic_store(&bottom, at + 1);
        if (!won) return;
#else
        atomic_store(&top, from + 1);
        atomic_store(&bottom, at + 1);
#endif
    }
    got(item);
}

static void *steal(void *arg) {
    int from = atomic_load(&top), at = atomic_load(&bottom);
    if (from < at) {
        int item = atomic_load(&items[from % 4]);
        if (atomic_compare_exchange_strong(&top, &from, from + 1)) got(item);
    }
    return arg;
}

static void *own(void *arg) {
    push(1);
    push(2);
    take();
    take();
    return arg;
}

int main(void) {
    pthread_t a, b;
    atomic_store(&top, 0);
    atomic_store(&bottom, 0);
    for (int i = 0; i < 4; i++) {
        atomic_store(&items[i], 0);
        atomic_store(&taken[i], 0);
    }
    pthread_create(&a, 0, own, 0);
    pthread_create(&b, 0, steal, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
