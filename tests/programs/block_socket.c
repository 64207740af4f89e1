// A server thread accepts two clients, one over loopback and one over a Unix socket; requests are answered, blocking everywhere.
// Prints the answers.
// portent: threads 3
// portent: stdout tcp answer 42, unix answer 84, pair answer 21
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *serves(void *socket)
{
    int client = accept(*(int *)socket, NULL, NULL), number;
    assert(client >= 0);
    while (recv(client, &number, sizeof number, MSG_WAITALL) == sizeof number) {
        number *= 2;
        assert(send(client, &number, sizeof number, 0) == sizeof number);
    }
    close(client);
    return NULL;
}

static int ask(int socket, const void *address, socklen_t length, int number)
{
    assert(connect(socket, address, length) == 0);
    assert(send(socket, &number, sizeof number, 0) == sizeof number);
    assert(recv(socket, &number, sizeof number, MSG_WAITALL) == sizeof number);
    close(socket);
    return number;
}

int main(void)
{
    int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_in internet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert(bind(tcp, (struct sockaddr *)&internet, sizeof internet) == 0 && listen(tcp, 5) == 0);
    socklen_t length = sizeof internet;
    assert(getsockname(tcp, (struct sockaddr *)&internet, &length) == 0);
    // A name without a file: the first byte is zero.
    struct sockaddr_un named = {.sun_family = AF_UNIX};
    snprintf(named.sun_path + 1, sizeof named.sun_path - 1, "portent-test-%d", (int)getpid());
    assert(bind(local, (struct sockaddr *)&named, sizeof named) == 0 && listen(local, 5) == 0);

    pthread_t a, b;
    assert(pthread_create(&a, NULL, serves, &tcp) == 0);
    assert(pthread_create(&b, NULL, serves, &local) == 0);
    printf("tcp answer %d, ", ask(socket(AF_INET, SOCK_STREAM, 0), &internet, sizeof internet, 21));
    printf("unix answer %d, ", ask(socket(AF_UNIX, SOCK_STREAM, 0), &named, sizeof named, 42));
    pthread_join(a, NULL);
    pthread_join(b, NULL);

    int pair[2], number = 21;
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    struct iovec part = {&number, sizeof number};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    assert(sendmsg(pair[0], &message, 0) == sizeof number);
    number = 0;
    assert(recvmsg(pair[1], &message, 0) == sizeof number);
    printf("pair answer %d\n", number);
    return 0;
}
