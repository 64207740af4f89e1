// Waits with time limits of an hour that pass because nobody sends: poll, select, epoll, a socket; and a short one for a signal.
// Prints what each gave.
// portent: threads 2
// portent: stdout poll 0, select 0, epoll 0, recv -1, signal -1
#define _GNU_SOURCE
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { HOUR = 3600 };

static void *waits(void *place)
{
    int fd = *(int *)place, instance = epoll_create1(0);
    struct pollfd one = {fd, POLLIN, 0};
    printf("poll %d, ", poll(&one, 1, HOUR * 1000));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval time = {HOUR, 0};
    int found = select(fd + 1, &set, NULL, NULL, &time);
    assert(!FD_ISSET(fd, &set));
    printf("select %d, ", found);
    struct epoll_event event = {.events = EPOLLIN};
    assert(epoll_ctl(instance, EPOLL_CTL_ADD, fd, &event) == 0);
    printf("epoll %d, ", epoll_wait(instance, &event, 1, HOUR * 1000));
    struct timeval limit = {HOUR, 0};
    assert(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    char byte;
    printf("recv %zd, ", recv(fd, &byte, 1, 0));
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    struct timespec last = {0, 100000000};
    printf("signal %d\n", sigtimedwait(&signals, NULL, &last));
    close(instance);
    return NULL;
}

int main(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int pair[2];
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pthread_t waiter;
    assert(pthread_create(&waiter, NULL, waits, &pair[1]) == 0);
    pthread_join(waiter, NULL);
    close(pair[0]);
    close(pair[1]);
    return 0;
}
