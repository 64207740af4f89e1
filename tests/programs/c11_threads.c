// C11 threads: create, join with a result, detach, thrd_exit, yield, sleep; plain, recursive and timed mutexes with their tries.
// Prints the results.
// portent: threads 5
// portent: stdout joined 3, exited 4, counter 100, tries busy busy taken
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

static mtx_t plain, recursive, timed;
static cnd_t came;
static int counter, detached_came;

static int raises(void *times)
{
    for (int i = 0; i < *(int *)times; i++) {
        assert(mtx_lock(&recursive) == thrd_success);
        assert(mtx_lock(&recursive) == thrd_success);
        counter++;
        assert(mtx_unlock(&recursive) == thrd_success);
        assert(mtx_unlock(&recursive) == thrd_success);
        thrd_yield();
    }
    return 3;
}

static int exits(void *unused)
{
    (void)unused;
    thrd_exit(4);
}

static int tries(void *unused)
{
    (void)unused;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    assert(mtx_trylock(&plain) == thrd_busy);
    assert(mtx_timedlock(&timed, &now) == thrd_timedout);
    mtx_lock(&recursive);
    detached_came = 1;
    cnd_signal(&came);
    mtx_unlock(&recursive);
    return 0;
}

int main(void)
{
    assert(mtx_init(&plain, mtx_plain) == thrd_success);
    assert(mtx_init(&recursive, mtx_plain | mtx_recursive) == thrd_success);
    assert(mtx_init(&timed, mtx_timed) == thrd_success);
    assert(cnd_init(&came) == thrd_success);
    thrd_t a, b, c, d;
    int fifty = 50, joined, other, exited;
    assert(thrd_create(&a, raises, &fifty) == thrd_success);
    assert(thrd_create(&b, raises, &fifty) == thrd_success);
    assert(thrd_create(&c, exits, NULL) == thrd_success);
    assert(thrd_join(a, &joined) == thrd_success);
    assert(thrd_join(b, &other) == thrd_success);
    assert(thrd_join(c, &exited) == thrd_success);

    mtx_lock(&plain);
    mtx_lock(&timed);
    assert(thrd_create(&d, tries, NULL) == thrd_success);
    assert(thrd_detach(d) == thrd_success);
    mtx_lock(&recursive);
    while (!detached_came)
        cnd_wait(&came, &recursive);
    mtx_unlock(&recursive);
    mtx_unlock(&plain);
    mtx_unlock(&timed);
    assert(mtx_trylock(&plain) == thrd_success);
    mtx_unlock(&plain);
    thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    printf("joined %d, exited %d, counter %d, tries busy busy taken\n", joined, exited, counter);
    mtx_destroy(&plain);
    mtx_destroy(&recursive);
    mtx_destroy(&timed);
    cnd_destroy(&came);
    return 0;
}
