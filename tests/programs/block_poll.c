// A thread waits for pipes by poll, ppoll, select, pselect and epoll, each time until another writes; and once for nothing.
// Prints who woke it.
// portent: threads 2
// portent: stdout poll 1, ppoll 1, select 1, pselect 1, epoll 1, none in time
#define _GNU_SOURCE
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static int ends[2];
static sem_t next;

static void *writes(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        sem_wait(&next);
        assert(write(ends[1], "x", 1) == 1);
    }
    return NULL;
}

static void take(void)
{
    char byte;
    assert(read(ends[0], &byte, 1) == 1);
}

int main(void)
{
    pthread_t thread;
    sem_init(&next, 0, 0);
    assert(pipe(ends) == 0);
    assert(pthread_create(&thread, NULL, writes, NULL) == 0);
    struct pollfd one = {.fd = ends[0], .events = POLLIN};

    sem_post(&next);
    printf("poll %d, ", poll(&one, 1, -1));
    take();
    sem_post(&next);
    printf("ppoll %d, ", ppoll(&one, 1, &(struct timespec){.tv_sec = 20}, NULL));
    take();
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    sem_post(&next);
    printf("select %d, ", select(ends[0] + 1, &set, NULL, NULL, NULL));
    take();
    sem_post(&next);
    printf("pselect %d, ", pselect(ends[0] + 1, &set, NULL, NULL, &(struct timespec){.tv_sec = 20}, NULL));
    take();
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[0]};
    assert(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    sem_post(&next);
    printf("epoll %d, ", epoll_wait(epoll, &event, 1, -1));
    take();
    assert(poll(&one, 1, 5) == 0 && poll(&one, 1, 0) == 0);
    assert(select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = 5000}) == 0);
    assert(epoll_wait(epoll, &event, 1, 5) == 0);
    puts("none in time");
    pthread_join(thread, NULL);
    return 0;
}
