// The program closes every file descriptor from 3 on, as daemons do, and counts those it can still open.
// Prints that it got descriptor 3 and that its threads worked; the recording goes on.
// portent: threads 2
// portent: ops acq 200
// portent: stdout descriptor 3, counted 200
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    counts(NULL);
    for (int i = 3; i < 2000; i++)
        close(i);
    closefrom(3);
    close_range(3, ~0U, 0);
    int descriptor = open("/dev/null", O_RDONLY);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, counts, NULL) == 0);
    pthread_join(thread, NULL);
    printf("descriptor %d, counted %d\n", descriptor, counted);
    return 0;
}
