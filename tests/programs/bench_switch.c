// Bench: two threads hand control to each other, by two futex calls (the least there is) or by sched_yield (which the recorder turns into a switch).
// Prints how often. Arguments: futex or yield, and how many times each thread hands over.
#define _GNU_SOURCE
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int turn;
static int by_futex, counter;
static long times;

static void *hands_over(void *argument)
{
    int me = (int)(intptr_t)argument;
    for (long i = 0; i < times; i++) {
        if (!by_futex) {
            counter++;
            sched_yield();
            continue;
        }
        while (turn != me)
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
        turn = !me;
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    assert(argc == 3);
    by_futex = strcmp(argv[1], "futex") == 0;
    times = atol(argv[2]);
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, hands_over, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", 2 * times);
    return 0;
}
