// The program changes its directory and its environment before it starts threads, and drops its limits.
// Prints where it is; the trace is written where the user asked for it all the same.
// portent: threads 2
// portent: stdout in / with HOME=nowhere
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *here, *home;

static void *looks(void *unused)
{
    here = get_current_dir_name();
    home = getenv("HOME");
    return unused;
}

int main(void)
{
    assert(chdir("/") == 0);
    umask(0777);
    clearenv();
    setenv("HOME", "nowhere", 1);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, looks, NULL) == 0);
    pthread_join(thread, NULL);
    printf("in %s with HOME=%s\n", here, home);
    free(here);
    return 0;
}
