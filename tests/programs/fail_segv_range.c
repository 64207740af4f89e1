// A thread copies a structure to memory that is mapped read-only: the fault is the program's, not the recorder's.
// The program dies by SIGSEGV.
// portent: signal SEGV
// portent: threads 2
// portent: stdout before
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct large {
    int numbers[100];
};
static struct large *target, source;

static void *copies(void *unused)
{
    (void)unused;
    *target = source;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    target = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    puts("before");
    fflush(stdout);
    assert(pthread_create(&thread, NULL, copies, NULL) == 0);
    pthread_join(thread, NULL);
    puts("after");
    return 0;
}
