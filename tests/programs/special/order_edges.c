// One datum, written by main and read by another thread, which only the system orders: `order_edges EDGE`.
// `order_edges EDGE race`: main writes it after what would have ordered it, so that the two race.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int data;
static _Atomic int seen;
static int racy;
static int ends[2];
static int listener;
static struct sockaddr_in address = {.sin_family = AF_INET};
static sigset_t set;
static pthread_t other;
static _Thread_local volatile sig_atomic_t handled;

static void look(void)
{
    seen = data;
}

static void on_signal(int number)
{
    (void)number;
    look();
    handled = 1;
}

static void install(int number)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(number, &action, NULL);
}

// What orders: main's side, and the other thread's.
static void main_write(void) { write(ends[1], "x", 1); }
static void *other_read(void *byte)
{
    char got;
    read(ends[0], &got, 1);
    look();
    return byte;
}

static void main_close(void) { close(ends[1]); }

static void main_stream(void)
{
    FILE *file = fdopen(ends[1], "w");
    fprintf(file, "line\n");
    fflush(file);
}
static void *other_stream(void *unused)
{
    char line[10];
    FILE *file = fdopen(ends[0], "r");
    fgets(line, sizeof line, file);
    look();
    return unused;
}

static void main_count(void) { eventfd_write(ends[0], 1); }
static void *other_count(void *unused)
{
    eventfd_t got;
    eventfd_read(ends[0], &got);
    look();
    return unused;
}

static void main_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    connect(fd, (struct sockaddr *)&address, sizeof address);
}
static void *other_accept(void *unused)
{
    accept(listener, NULL, NULL);
    look();
    return unused;
}

static void main_listen(void) { listen(listener, 1); }
static void *other_connect(void *unused)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        usleep(1000);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    look();
    return unused;
}

static void main_install(void) { install(SIGURG); }
static void *other_raise(void *unused)
{
    while (!handled) {
        raise(SIGURG);
        usleep(1000);
    }
    return unused;
}

static void *other_handle(void *unused)
{
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (!handled)
        usleep(1000);
    return unused;
}
static void main_kill(void) { kill(getpid(), SIGUSR1); }
static void main_pthread_kill(void) { pthread_kill(other, SIGUSR1); }
static void main_queue(void) { sigqueue(getpid(), SIGUSR1, (union sigval){0}); }
static void main_alarm(void)
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}
static void main_timer(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {.it_value = {.tv_nsec = 20000000}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
}

static void *other_sigwait(void *unused)
{
    int number;
    sigwait(&set, &number);
    look();
    return unused;
}

static void before_fork(void)
{
    look();
    handled = 1;
}
static void main_atfork(void) { pthread_atfork(before_fork, NULL, NULL); }
static void *other_fork(void *unused)
{
    while (!handled) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        usleep(1000);
    }
    return unused;
}

static const struct edge {
    const char *name;
    void (*main)(void);
    void *(*other)(void *);
} edges[] = {
    {"pipe", main_write, other_read},         {"socketpair", main_write, other_read},
    {"readers", main_write, other_read},      {"close", main_close, other_read},
    {"stream", main_stream, other_stream},    {"eventfd", main_count, other_count},
    {"connect", main_connect, other_accept},  {"listen", main_listen, other_connect},
    {"sigaction", main_install, other_raise}, {"kill", main_kill, other_handle},
    {"pthread_kill", main_pthread_kill, other_handle}, {"sigqueue", main_queue, other_handle},
    {"setitimer", main_alarm, other_handle},  {"timer", main_timer, other_handle},
    {"sigwait", main_kill, other_sigwait},    {"atfork", main_atfork, other_fork},
};

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "";
    racy = count > 2;
    const struct edge *edge = edges;
    while (strcmp(edge->name, name) != 0)
        if (++edge == edges + sizeof edges / sizeof *edges)
            return 2;
    if (strcmp(name, "socketpair") == 0)
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    else if (strcmp(name, "eventfd") == 0)
        ends[0] = eventfd(0, 0);
    else
        pipe(ends);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr *)&address, size);
    getsockname(listener, (struct sockaddr *)&address, &size);
    if (strcmp(name, "connect") == 0)
        listen(listener, 1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (edge->other == other_handle) {
        install(SIGUSR1);
        install(SIGALRM);
    }
    // Two threads read two messages from one pipe, which were there before.
    pthread_t second;
    int readers = strcmp(name, "readers") == 0;
    pthread_create(&other, NULL, edge->other, NULL);
    if (readers)
        pthread_create(&second, NULL, edge->other, NULL);
    if (!racy)
        data = 1;
    edge->main();
    if (readers)
        edge->main();
    if (racy)
        data = 1;
    pthread_join(other, NULL);
    if (readers)
        pthread_join(second, NULL);
    puts("done");
    return 0;
}
