// Main waits for a child process that in turn waits for a thread of main to write into a pipe.
// Prints what the child exited with.
// portent: threads 2
// portent: stdout child exited with 5
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

static void *releases(void *unused)
{
    (void)unused;
    char five = 5;
    assert(write(ends[1], &five, 1) == 1);
    return NULL;
}

int main(void)
{
    assert(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(ends[0], &byte, 1) == 1 ? byte : 99);
    }
    pthread_t thread;
    assert(pthread_create(&thread, NULL, releases, NULL) == 0);
    siginfo_t info;
    assert(waitid(P_PID, (id_t)child, &info, WEXITED) == 0);
    pthread_join(thread, NULL);
    printf("child exited with %d\n", info.si_status);
    return 0;
}
