// Leaves a daemon with two threads that never ends.
// It is ended, and what it did until then is examined.
#include <pthread.h>
#include <unistd.h>

static int ticks;

static void *tick(void *unused)
{
    for (;;) {
        __atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
        usleep(1000);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (fork() > 0)
        return 0;
    setsid();
    pthread_create(&thread, NULL, tick, NULL);
    tick(NULL);
}
