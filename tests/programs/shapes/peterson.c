// Peterson's algorithm. Buggy: each looks at the other's flag before it has raised its own.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag[2], turn, inside;

static void *enter(void *arg) {
    int me = (int)(long)arg, other = 1 - me;
#ifdef FIXED
    atomic_store(&flag[me], 1);
    atomic_store(&turn, other);
    while (atomic_load(&flag[other]) && atomic_load(&turn) == other) {}
#else
    while (atomic_load(&flag[other]) && atomic_load(&turn) == other) {}
    atomic_store(&flag[me], 1);
    atomic_store(&turn, other);
#endif
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    atomic_store(&flag[me], 0);
    return 0;
}

int main(void) {
    pthread_t a, b;
    atomic_store(&flag[0], 0);
    atomic_store(&flag[1], 0);
    atomic_store(&turn, 0);
    atomic_store(&inside, 0);
    pthread_create(&a, 0, enter, (void *)0);
    pthread_create(&b, 0, enter, (void *)1);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
