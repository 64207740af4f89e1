// A timed wait that nobody signals times out, and not before its time; one that is signalled does not.
// Prints both; a loop that waits until a deadline has passed comes to an end.
// portent: threads 2
// portent: ops tmo 2+
// portent: stdout timed out after its time, signalled in time, deadline passed
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int wait_until(long long time)
{
    struct timespec t = {time / 1000000000, time % 1000000000};
    return pthread_cond_timedwait(&changed, &lock, &t);
}

static void *signals(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_mutex_lock(&lock);
    long long deadline = now() + 20000000;
    int result;
    do
        result = wait_until(deadline);
    while (result == 0);
    assert(result == ETIMEDOUT);
    assert(now() >= deadline);
    printf("timed out after its time, ");

    pthread_t thread;
    assert(pthread_create(&thread, NULL, signals, NULL) == 0);
    while (!ready)
        assert(wait_until(now() + 20000000000LL) == 0);
    printf("signalled in time, ");

    deadline = now() + 20000000;
    while (now() < deadline)
        wait_until(deadline);
    puts("deadline passed");
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
