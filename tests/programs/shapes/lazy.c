// Lazy initialisation: whoever is first makes the thing. Buggy: nothing keeps two from being first.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int *) thing;
static atomic_int made;

static int *get(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    if (!atomic_load(&thing)) {
        atomic_fetch_add(&made, 1);
        int *own = malloc(sizeof *own);
        *own = 7;
        atomic_store(&thing, own);
    }
    int *it = atomic_load(&thing);
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return it;
}

static void *use(void *arg) {
    assert(*get() == 7);
    return arg;
}

int main(void) {
    pthread_t a, b;
    (void)lock;
    atomic_store(&thing, 0);
    atomic_store(&made, 0);
    pthread_create(&a, 0, use, 0);
    pthread_create(&b, 0, use, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    assert(atomic_load(&made) == 1);
    return 0;
}
