// A program with threads forks a helper that works, prints and exits; a thread goes on meanwhile and main waits for both.
// Prints the helper's line, its exit status and the thread's result; only the first process is recorded.
// portent: threads 2
// portent: stdout helper: 5050
// portent: stdout helper exited 9, thread counted 1000
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, counts, NULL) == 0);
    pid_t helper = fork();
    assert(helper >= 0);
    if (helper == 0) {
        int sum = 0;
        for (int i = 1; i <= 100; i++)
            sum += i;
        printf("helper: %d\n", sum);
        fflush(stdout);
        _exit(9);
    }
    int status;
    assert(waitpid(helper, &status, 0) == helper && WIFEXITED(status));
    pthread_join(thread, NULL);
    printf("helper exited %d, thread counted %d\n", WEXITSTATUS(status), counted);
    return 0;
}
