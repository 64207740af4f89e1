// Calls that block and are rarely used: opening a FIFO, a file lock, and a raw read by syscall().
// Prints that all of them came back.
// portent: threads 4
// portent: stdout fifo 1, lock 1, raw 1
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char fifo[64], lock_file[64];
static int ends[2];
static sem_t held;

static void *opens(void *unused)
{
    (void)unused;
    int end = open(fifo, O_WRONLY);
    assert(end >= 0 && write(end, "x", 1) == 1);
    close(end);
    return NULL;
}

static void *holds(void *unused)
{
    (void)unused;
    int file = open(lock_file, O_RDWR);
    assert(flock(file, LOCK_EX) == 0);
    sem_post(&held);
    usleep(20000);
    close(file);
    return NULL;
}

static void *writes(void *unused)
{
    (void)unused;
    usleep(20000);
    assert(syscall(SYS_write, ends[1], "x", 1) == 1);
    return NULL;
}

int main(void)
{
    char directory[32], byte;
    snprintf(directory, sizeof directory, "/tmp/portent-test-%d", (int)getpid());
    assert(mkdir(directory, 0700) == 0);
    snprintf(fifo, sizeof fifo, "%s/fifo", directory);
    snprintf(lock_file, sizeof lock_file, "%s/lock", directory);
    sem_init(&held, 0, 0);
    pthread_t thread;

    assert(mkfifo(fifo, 0600) == 0);
    assert(pthread_create(&thread, NULL, opens, NULL) == 0);
    int end = open(fifo, O_RDONLY);
    printf("fifo %d, ", (int)read(end, &byte, 1));
    pthread_join(thread, NULL);

    int file = open(lock_file, O_RDWR | O_CREAT, 0600);
    assert(pthread_create(&thread, NULL, holds, NULL) == 0);
    sem_wait(&held);
    printf("lock %d, ", flock(file, LOCK_EX) == 0);
    pthread_join(thread, NULL);

    assert(pipe(ends) == 0);
    assert(pthread_create(&thread, NULL, writes, NULL) == 0);
    printf("raw %d\n", (int)syscall(SYS_read, ends[0], &byte, 1));
    pthread_join(thread, NULL);
    unlink(fifo);
    unlink(lock_file);
    rmdir(directory);
    return 0;
}
