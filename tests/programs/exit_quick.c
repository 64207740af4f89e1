// Main calls quick_exit while a thread works: handlers of at_quick_exit run, those of atexit do not.
// Prints the quick handler.
// portent: exit 6
// portent: threads 2
// portent: stdout quick handler
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int counter;

static void quick(void) { assert(write(STDOUT_FILENO, "quick handler\n", 14) == 14); }
static void slow(void) { assert(write(STDOUT_FILENO, "slow handler\n", 13) == 13); }

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
    at_quick_exit(quick);
    atexit(slow);
    assert(pthread_create(&thread, NULL, works, NULL) == 0);
    quick_exit(6);
}
