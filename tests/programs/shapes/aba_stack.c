// A lock-free stack of three nodes that are taken and put back. Buggy: the top may be the same node and not the same stack (ABA).
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

// A node's number, and in the fixed one how often the top has changed.
static atomic_int top, next[4], held[4];

#ifdef FIXED
#define CHANGE(old, node) ((node) | (((old) | 7) + 1))
#else
#define CHANGE(old, node) (node)
#endif
#define NODE(top) ((top) & 7)

// Both give up after a few tries: whoever fails every time has done nothing.
static int pop(void) {
    int old = atomic_load(&top);
    for (int tries = 0; tries < 2; tries++) {
        int node = NODE(old);
        if (!node) return 0;
        int after = atomic_load(&next[node]);
        if (atomic_compare_exchange_strong(&top, &old, CHANGE(old, after))) {
            assert(atomic_fetch_add(&held[node], 1) == 0);
            return node;
        }
    }
    return 0;
}

static void push(int node) {
    int old = atomic_load(&top);
    atomic_fetch_sub(&held[node], 1);
    for (int tries = 0; tries < 2; tries++) {
        atomic_store(&next[node], NODE(old));
        if (atomic_compare_exchange_strong(&top, &old, CHANGE(old, node))) return;
    }
}

static void *one(void *arg) {
    pop();
    pop();
    return arg;
}

static void *two(void *arg) {
    int a = pop(), b = pop();
    (void)b;
    if (a) push(a);
    return arg;
}

int main(void) {
    pthread_t a, b;
    for (int i = 0; i < 4; i++) {
        atomic_store(&held[i], 0);
        atomic_store(&next[i], i < 3 && i > 0 ? i + 1 : 0);
    }
    atomic_store(&top, 1);
    pthread_create(&a, 0, one, 0);
    pthread_create(&b, 0, two, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
