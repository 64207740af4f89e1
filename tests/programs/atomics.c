// C atomics of 1, 2, 4 and 8 bytes with all operations and memory orders, flags, fences, and counters raised by CAS loops.
// Prints the counters; none loses an increment.
// portent: threads 4
// portent: ops u.rlx 1+
// portent: ops u.ar 1+
// portent: ops u.rel 1+
// portent: ops u.acq 1+
// portent: ops u.sc 1+
// portent: ops r.acq 1+
// portent: ops r.rlx 1+
// portent: ops r.sc 1+
// portent: ops w.rel 1+
// portent: ops w.rlx 1+
// portent: ops w.sc 1+
// portent: stdout 44 300 300 300, cas 300 300, locked 300
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static _Atomic uint8_t one;
static _Atomic uint16_t two;
static _Atomic uint32_t four;
static _Atomic uint64_t eight;
static _Atomic uint32_t strong;
static _Atomic uint64_t weak;
static atomic_flag flag = ATOMIC_FLAG_INIT;
static int locked;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        atomic_fetch_add_explicit(&one, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&two, 1, memory_order_acq_rel);
        atomic_fetch_sub_explicit(&four, (uint32_t)-1, memory_order_release);
        atomic_fetch_add(&eight, 1);
        uint32_t seen = atomic_load_explicit(&strong, memory_order_relaxed);
        while (!atomic_compare_exchange_strong_explicit(&strong, &seen, seen + 1, memory_order_acq_rel, memory_order_acquire))
            ;
        uint64_t saw = atomic_load_explicit(&weak, memory_order_acquire);
        while (!atomic_compare_exchange_weak(&weak, &saw, saw + 1))
            ;
        while (atomic_flag_test_and_set_explicit(&flag, memory_order_acquire))
            ;
        locked++;
        atomic_flag_clear_explicit(&flag, memory_order_release);
    }
    return NULL;
}

int main(void)
{
    _Atomic uint8_t b = 0x0f;
    assert(atomic_exchange(&b, 0xf0) == 0x0f && atomic_fetch_or(&b, 0x03) == 0xf0);
    assert(atomic_fetch_and(&b, 0x3f) == 0xf3 && atomic_fetch_xor(&b, 0xff) == 0x33 && b == 0xcc);
    assert(__atomic_fetch_nand(&b, 0x0f, __ATOMIC_SEQ_CST) == 0xcc && b == 0xf3);
    _Atomic uint16_t h = 0x8000;
    assert(atomic_exchange_explicit(&h, 7, memory_order_release) == 0x8000);
    uint16_t expected = 8;
    assert(!atomic_compare_exchange_strong(&h, &expected, 9) && expected == 7);
    atomic_store_explicit(&h, 1, memory_order_relaxed);
    atomic_store_explicit(&h, 2, memory_order_release);
    atomic_store(&h, 3);
    assert(atomic_load_explicit(&h, memory_order_consume) == 3);
    atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_acq_rel);
    _Atomic(int *) pointer = NULL;
    int target[4] = {0, 0, 0, 5};
    atomic_store(&pointer, target + 3);
    assert(*atomic_load(&pointer) == 5);
    _Atomic double real = 1.5;
    assert(atomic_exchange(&real, 3.5) == 1.5 && real == 3.5);
    uint64_t old = 1;
    assert(__sync_fetch_and_add(&old, 4) == 1 && __sync_add_and_fetch(&old, 5) == 10);
    assert(__sync_bool_compare_and_swap(&old, 10, 11) && __sync_val_compare_and_swap(&old, 10, 12) == 11);

    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %u %lu, cas %u %lu, locked %d\n", one, two, four, (unsigned long)eight, strong, (unsigned long)weak, locked);
    return 0;
}
