// Client and server over a socket pair, each waiting for the other to speak first.
// Always deadlocks; Portent reports it at once.
// portent: deadlock system
// portent: threads 2
#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>

static int pair[2];

static void *serves(void *unused)
{
    int request;
    if (recv(pair[1], &request, sizeof request, MSG_WAITALL) == sizeof request)
        send(pair[1], &request, sizeof request, 0);
    return unused;
}

int main(void)
{
    int answer;
    pthread_t server;
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    assert(pthread_create(&server, NULL, serves, NULL) == 0);
    // The request is forgotten.
    recv(pair[0], &answer, sizeof answer, MSG_WAITALL);
    pthread_join(server, NULL);
    return 0;
}
