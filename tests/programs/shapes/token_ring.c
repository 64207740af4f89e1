// A token ring: each of four threads hands on what it got from the one before it. Buggy: nobody waits for the token.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int token[4];

#ifdef FIXED
static pthread_t before[4];
#endif

static void *hand_on(void *arg) {
    long me = (long)arg;
#ifdef FIXED
    if (me > 0) pthread_join(before[me], 0);
#endif
    int got = me > 0 ? atomic_load(&token[me - 1]) : 1;
    atomic_store(&token[me], got + 1);
    return 0;
}

int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) atomic_store(&token[i], 0);
    for (long i = 0; i < 4; i++) {
#ifdef FIXED
        if (i > 0) before[i] = threads[i - 1];
#endif
        pthread_create(&threads[i], 0, hand_on, (void *)i);
    }
#ifdef FIXED
    pthread_join(threads[3], 0);
#else
    for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
#endif
    assert(atomic_load(&token[3]) == 5);
    return 0;
}
