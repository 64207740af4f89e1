// C11 conditions: signal and broadcast between threads, and a timed wait that times out.
// Prints the turns and the time-out.
// portent: threads 4
// portent: ops nta 1
// portent: stdout 30 turns, timed out
#include <assert.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

static mtx_t lock;
static cnd_t changed, start;
static int started, turns;

static int play(void *argument)
{
    int me = *(int *)argument;
    mtx_lock(&lock);
    while (!started)
        assert(cnd_wait(&start, &lock) == thrd_success);
    for (int i = 0; i < 10; i++) {
        while (turns % 3 != me)
            assert(cnd_wait(&changed, &lock) == thrd_success);
        turns++;
        for (int other = 0; other < 2; other++)
            assert(cnd_signal(&changed) == thrd_success);
    }
    mtx_unlock(&lock);
    return 0;
}

int main(void)
{
    mtx_init(&lock, mtx_plain);
    cnd_init(&changed);
    cnd_init(&start);
    thrd_t threads[3];
    int number[3] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        assert(thrd_create(&threads[i], play, &number[i]) == thrd_success);
    mtx_lock(&lock);
    started = 1;
    assert(cnd_broadcast(&start) == thrd_success);
    mtx_unlock(&lock);
    for (int i = 0; i < 3; i++)
        thrd_join(threads[i], NULL);
    struct timespec soon;
    timespec_get(&soon, TIME_UTC);
    soon.tv_sec += soon.tv_nsec / 990000000;
    soon.tv_nsec = (soon.tv_nsec + 10000000) % 1000000000;
    mtx_lock(&lock);
    int result;
    while ((result = cnd_timedwait(&changed, &lock, &soon)) == thrd_success)
        ;
    mtx_unlock(&lock);
    assert(result == thrd_timedout);
    printf("%d turns, timed out\n", turns);
    return 0;
}
