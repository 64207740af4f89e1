// Two workers wait on one instance of epoll for requests on socket pairs, and for an event counter that ends them.
// Prints how many requests were answered.
// portent: threads 3
// portent: stdout 2 answered
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int instance, stop, pairs[2][2], answered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *works(void *unused)
{
    for (;;) {
        struct epoll_event event;
        assert(epoll_wait(instance, &event, 1, -1) == 1);
        if (event.data.fd == stop)
            return unused;
        int number;
        assert(read(event.data.fd, &number, sizeof number) == sizeof number);
        pthread_mutex_lock(&lock);
        answered++;
        pthread_mutex_unlock(&lock);
        assert(write(event.data.fd, &number, sizeof number) == sizeof number);
    }
}

static void add(int descriptor, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    assert(epoll_ctl(instance, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

int main(void)
{
    instance = epoll_create1(0);
    stop = eventfd(0, 0);
    add(stop, EPOLLIN);
    pthread_t workers[2];
    for (int i = 0; i < 2; i++) {
        assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0);
        add(pairs[i][1], EPOLLIN | EPOLLONESHOT);
    }
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&workers[i], NULL, works, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(write(pairs[i][0], &i, sizeof i) == sizeof i);
    for (int i = 0, number; i < 2; i++)
        assert(read(pairs[i][0], &number, sizeof number) == sizeof number && number == i);
    assert(eventfd_write(stop, 1) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    printf("%d answered\n", answered);
    return 0;
}
