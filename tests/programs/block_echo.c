// A server thread answers two clients over loopback TCP, one after the other: everybody blocks, nobody sleeps.
// Prints the sum of the answers.
// portent: threads 4
// portent: stdout 33
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address = {.sin_family = AF_INET};

static void *serves(void *listening)
{
    for (int i = 0; i < 2; i++) {
        int client = accept(*(int *)listening, NULL, NULL), number;
        assert(client >= 0);
        while (recv(client, &number, sizeof number, 0) == sizeof number) {
            number *= 3;
            assert(send(client, &number, sizeof number, 0) == sizeof number);
        }
        close(client);
    }
    return NULL;
}

static void *asks(void *place)
{
    int *number = place, server = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(server, (struct sockaddr *)&address, sizeof address) == 0);
    assert(send(server, number, sizeof *number, 0) == sizeof *number);
    assert(recv(server, number, sizeof *number, 0) == sizeof *number);
    close(server);
    return NULL;
}

int main(void)
{
    int listening = socket(AF_INET, SOCK_STREAM, 0), numbers[2] = {1, 10};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 && listen(listening, 4) == 0);
    assert(getsockname(listening, (struct sockaddr *)&address, &length) == 0);
    pthread_t server, clients[2];
    assert(pthread_create(&server, NULL, serves, &listening) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&clients[i], NULL, asks, &numbers[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(clients[i], NULL);
    pthread_join(server, NULL);
    close(listening);
    printf("%d\n", numbers[0] + numbers[1]);
    return 0;
}
