// The program fails in its own way: it says so on standard error and exits with status 42.
// Prints to both streams, and both pass through untouched.
// portent: exit 42
// portent: threads 2
// portent: stderr something is wrong
// portent: stdout working
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int status;

static void *fails(void *unused)
{
    (void)unused;
    status = 42;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    puts("working");
    assert(pthread_create(&thread, NULL, fails, NULL) == 0);
    pthread_join(thread, NULL);
    fprintf(stderr, "something is wrong\n");
    return status;
}
