// A forked child makes threads and locks of its own and leaves by exit; handlers of pthread_atfork run in both processes.
// Prints what the child sent through a pipe.
// portent: threads 1
// portent: stdout prepare parent; child says 300, exited 0
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter, in_child;

static void prepare(void) { printf("prepare "); fflush(stdout); }
static void parent(void) { printf("parent; "); fflush(stdout); }
static void child(void) { in_child = 1; }

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    int ends[2];
    assert(pipe(ends) == 0);
    pthread_atfork(prepare, parent, child);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            assert(pthread_create(&threads[i], NULL, counts, NULL) == 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        assert(in_child && write(ends[1], &counter, sizeof counter) == sizeof counter);
        exit(0);
    }
    int got, status;
    assert(read(ends[0], &got, sizeof got) == sizeof got);
    assert(waitpid(pid, &status, 0) == pid);
    printf("child says %d, exited %d\n", got, WEXITSTATUS(status));
    return 0;
}
