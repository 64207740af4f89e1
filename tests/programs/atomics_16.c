// Atomics of 16 bytes: a pointer with a counter, changed together by a compare-exchange of the whole.
// Prints both halves, which always agree.
// portent: build -mcx16 -latomic
// portent: threads 4
// portent: stdout 300 and 300
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static _Alignas(16) unsigned __int128 both;

static void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        unsigned __int128 seen = __atomic_load_n(&both, __ATOMIC_ACQUIRE), next;
        do {
            uint64_t low = (uint64_t)seen, high = (uint64_t)(seen >> 64);
            assert(low == high);
            next = (unsigned __int128)(high + 1) << 64 | (low + 1);
        } while (!__atomic_compare_exchange_n(&both, &seen, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    }
    return unused;
}

int main(void)
{
    unsigned __int128 zero = 0;
    __atomic_store_n(&both, (unsigned __int128)7, __ATOMIC_SEQ_CST);
    assert(__atomic_exchange_n(&both, zero, __ATOMIC_SEQ_CST) == 7);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%lu and %lu\n", (unsigned long)both, (unsigned long)(both >> 64));
    return 0;
}
