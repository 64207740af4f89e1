// A thread recurses without end and runs out of stack: not even a signal handler has room there.
// The program dies by SIGSEGV.
// portent: build -Wno-infinite-recursion
// portent: signal SEGV
// portent: threads 2
#include <assert.h>
#include <pthread.h>

static volatile int sum;

static int descend(int depth)
{
    volatile char room[200];
    room[depth % 200] = 1;
    sum += room[depth % 200];
    return descend(depth + 1) + room[0];
}

static void *run(void *unused)
{
    (void)unused;
    descend(0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    assert(pthread_create(&thread, &small, run, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
