// Asks for process and thread ids, and for addresses of code, stack, heap and environment.
// Prints them; a replay prints the same again, because ids are served from the recording and nothing moves.
// portent: threads 2
// portent: stdout pid *
// portent: stdout addresses *
// portent: stdout thread *
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *asks(void *unused)
{
    (void)unused;
    int local;
    void *block = malloc(100);
    printf("thread %d %ld %p %p %p\n", (int)gettid(), syscall(SYS_gettid), (void *)pthread_self(), (void *)&local, block);
    free(block);
    return NULL;
}

int main(void)
{
    int local;
    void *block = malloc(100), *large = malloc(1 << 20);
    printf("pid %d %d %d\n", (int)getpid(), (int)getppid(), (int)gettid());
    printf("addresses %p %p %p %p %p\n", (void *)main, (void *)&local, block, large, (void *)getenv("PATH"));
    pthread_t thread;
    assert(pthread_create(&thread, NULL, asks, NULL) == 0);
    pthread_join(thread, NULL);
    free(block);
    free(large);
    return 0;
}
