// A thread that learns what nobody in its program decides: `outside clock`, `outside network`. With `outside inside` what it receives
// over a socket of the internet comes from another thread of its own.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in address;
static int listener;
static long learned;

static void listen_somewhere(void)
{
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, size) || listen(listener, 1) || getsockname(listener, (void *)&address, &size))
        exit(3);
}

static void *answer(void *unused)
{
    int caller = accept(listener, NULL, NULL);
    send(caller, "42", 2, 0);
    close(caller);
    return unused;
}

static void *ask(void *unused)
{
    char text[8] = {0};
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (void *)&address, sizeof address))
        exit(4);
    while (recv(server, text + strlen(text), 2, 0) > 0) // received here
        ;
    learned = atoi(text);
    close(server);
    return unused;
}

static void *look(void *unused)
{
    learned = time(NULL); // the time
    return unused;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    pthread_t one, two;
    if (!strcmp(what, "clock")) {
        pthread_create(&one, NULL, look, NULL);
        pthread_join(one, NULL);
        return learned == 0;
    }
    listen_somewhere();
    int inside = !strcmp(what, "inside");
    pid_t server = inside ? 0 : fork();
    if (!inside && server == 0) {
        answer(NULL);
        _exit(0);
    }
    if (inside)
        pthread_create(&two, NULL, answer, NULL);
    pthread_create(&one, NULL, ask, NULL);
    pthread_join(one, NULL);
    if (inside)
        pthread_join(two, NULL);
    else
        waitpid(server, NULL, 0);
    return learned != 42;
}
