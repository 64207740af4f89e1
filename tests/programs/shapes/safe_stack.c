// SafeStack (Vyukov): a lock-free stack of three items. Three threads, each of which takes an item and puts it back twice (or as
// often as the argument says), can hold the same one, after at least five preemptions. FIXED: a lock around each. Whoever has tried
// three times gives up, so that nobody spins; the shortest way to the bug (42 operations) has no use for a fourth try.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds = 2;
static atomic_int head, count, next[3], held[3];

static int pop(void) {
    for (int tries = 0; tries < 3 && atomic_load(&count) > 1; tries++) {
        int first = atomic_load(&head);
        int after = atomic_exchange(&next[first], -1);
        if (after < 0) continue;
        int expected = first;
        if (atomic_compare_exchange_strong(&head, &expected, after)) {
            atomic_fetch_sub(&count, 1);
            return first;
        }
        atomic_exchange(&next[first], after);
    }
    return -1;
}

static void push(int item) {
    int first = atomic_load(&head);
    for (int tries = 0; tries < 3; tries++) {
        atomic_store(&next[item], first);
        if (atomic_compare_exchange_strong(&head, &first, item)) {
            atomic_fetch_add(&count, 1);
            return;
        }
    }
}

static void *work(void *arg) {
    for (int i = 0; i < rounds; i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
#endif
        int item = pop();
#ifdef FIXED
        pthread_mutex_unlock(&lock);
#endif
        if (item < 0) continue;
        assert(atomic_fetch_add(&held[item], 1) == 0);
        atomic_fetch_sub(&held[item], 1);
#ifdef FIXED
        pthread_mutex_lock(&lock);
#endif
        push(item);
#ifdef FIXED
        pthread_mutex_unlock(&lock);
#endif
    }
    return arg;
}

int main(int argc, char **argv) {
    pthread_t all[3];
    (void)lock;
    if (argc > 1) rounds = atoi(argv[1]);
    atomic_store(&head, 0);
    atomic_store(&count, 3);
    for (int i = 0; i < 3; i++) {
        atomic_store(&next[i], i < 2 ? i + 1 : -1);
        atomic_store(&held[i], 0);
    }
    for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(all[i], 0);
    return 0;
}
