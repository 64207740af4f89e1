// A lock and an event made of raw futex calls, a wait whose value has already changed, one that times out, a bitset wait.
// Prints the exact sum.
// portent: threads 4
// portent: stdout 150, again, timed out, woken
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int lock, event;
static int counter;

static long futex(atomic_int *word, int operation, int value, const struct timespec *time, int bits)
{
    return syscall(SYS_futex, word, operation, value, time, NULL, bits);
}

// 0 free, 1 held, 2 held and somebody waits.
static void take(void)
{
    int seen = 0;
    if (atomic_compare_exchange_strong(&lock, &seen, 1))
        return;
    while (atomic_exchange(&lock, 2) != 0)
        futex(&lock, FUTEX_WAIT_PRIVATE, 2, NULL, 0);
}

static void give(void)
{
    if (atomic_exchange(&lock, 0) == 2)
        futex(&lock, FUTEX_WAKE_PRIVATE, 1, NULL, 0);
}

static void *work(void *unused)
{
    (void)unused;
    while (event == 0)
        futex(&event, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, 2);
    for (int i = 0; i < 50; i++) {
        take();
        counter++;
        give();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    event = 1;
    futex(&event, FUTEX_WAKE_BITSET_PRIVATE, 100, NULL, 2);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(futex(&event, FUTEX_WAIT_PRIVATE, 0, NULL, 0) == -1 && errno == EAGAIN);
    struct timespec ten = {.tv_nsec = 10000000};
    assert(futex(&event, FUTEX_WAIT_PRIVATE, 1, &ten, 0) == -1 && errno == ETIMEDOUT);
    printf("%d, again, timed out, woken\n", counter);
    return 0;
}
