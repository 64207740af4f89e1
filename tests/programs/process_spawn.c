// Helpers are started by posix_spawn, posix_spawnp, system and popen, while a thread runs.
// Prints what they said; they are not recorded and do not disturb the recording.
// portent: threads 2
// portent: stdout spawned
// portent: stdout found by path
// portent: stdout by system
// portent: stdout popen said: by popen
// portent: stdout thread counted 100
#include <assert.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;
static int counted;

static void *counts(void *unused)
{
    (void)unused;
    while (counted < 100)
        counted++;
    return NULL;
}

static void wait_for(pid_t pid)
{
    int status;
    assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    pthread_t thread;
    pid_t pid;
    assert(pthread_create(&thread, NULL, counts, NULL) == 0);
    assert(posix_spawn(&pid, "/bin/sh", NULL, NULL, (char *[]){"sh", "-c", "echo spawned", NULL}, environ) == 0);
    wait_for(pid);
    assert(posix_spawnp(&pid, "echo", NULL, NULL, (char *[]){"echo", "found by path", NULL}, environ) == 0);
    wait_for(pid);
    assert(system("echo by system") == 0);
    char line[64];
    FILE *pipe = popen("echo by popen", "r");
    assert(pipe && fgets(line, sizeof line, pipe));
    assert(pclose(pipe) == 0);
    printf("popen said: %s", line);
    pthread_join(thread, NULL);
    printf("thread counted %d\n", counted);
    return 0;
}
