// Main returns while a detached thread loops for ever: the process ends all the same, soon.
// Prints what main knew.
// portent: exit 0
// portent: threads 2
// portent: stdout main returns
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long rounds;

static void *loops(void *unused)
{
    (void)unused;
    for (;;)
        rounds++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, loops, NULL) == 0);
    pthread_detach(thread);
    while (rounds == 0)
        sched_yield();
    puts("main returns");
    return 0;
}
