// C11 call_once by three threads, and thread-specific storage with a destructor that runs for each of them.
// Prints how often each ran.
// portent: threads 4
// portent: ops onceb 1
// portent: ops oncep 2
// portent: stdout once 1, destroyed 3, sum 6
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static once_flag flag = ONCE_FLAG_INIT;
static tss_t key;
static int ran;
static atomic_int destroyed, sum;
static thread_local int mine;

static void destroy(void *number)
{
    sum += *(int *)number;
    destroyed++;
    free(number);
}

static void initialise(void)
{
    ran++;
    assert(tss_create(&key, destroy) == thrd_success);
}

static int work(void *argument)
{
    call_once(&flag, initialise);
    mine = *(int *)argument;
    assert(tss_get(key) == NULL);
    int *number = malloc(sizeof *number);
    *number = mine;
    assert(tss_set(key, number) == thrd_success);
    thrd_yield();
    assert(*(int *)tss_get(key) == mine && mine == *(int *)argument);
    return 0;
}

int main(void)
{
    thrd_t threads[3];
    int number[3] = {1, 2, 3};
    for (int i = 0; i < 3; i++)
        assert(thrd_create(&threads[i], work, &number[i]) == thrd_success);
    for (int i = 0; i < 3; i++)
        thrd_join(threads[i], NULL);
    printf("once %d, destroyed %d, sum %d\n", ran, destroyed, sum);
    return 0;
}
