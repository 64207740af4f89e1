// Main calls _exit while a thread works: no handlers, no flushing, and still the trace is whole.
// Prints only what was flushed before.
// portent: exit 5
// portent: threads 2
// portent: stdout flushed
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int counter;

static void handler(void) { puts("handler"); }

static void *works(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        counter++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    atexit(handler);
    puts("flushed");
    fflush(stdout);
    // Lost, because standard output is no terminal and so buffered.
    printf("lost");
    assert(pthread_create(&thread, NULL, works, NULL) == 0);
    _exit(5);
}
