// A child becomes another program by exec; then this instrumented program starts itself as a child, which makes a thread too.
// Prints what both said; the recording stays that of the first process.
// portent: threads 1
// portent: stdout from exec
// portent: stdout own child counted 10
// portent: stdout exited 0 and 3
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int counted;

static void *counts(void *unused)
{
    (void)unused;
    while (counted < 10)
        counted++;
    return NULL;
}

static int run(char *const arguments[])
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(arguments[0], arguments);
        _exit(99);
    }
    assert(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        pthread_t thread;
        assert(pthread_create(&thread, NULL, counts, NULL) == 0);
        pthread_join(thread, NULL);
        printf("own child counted %d\n", counted);
        return 3;
    }
    int first = run((char *[]){"echo", "from exec", NULL});
    int second = run((char *[]){"/proc/self/exe", "child", NULL});
    printf("exited %d and %d\n", first, second);
    return 0;
}
