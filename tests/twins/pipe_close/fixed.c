// Log lines go through a pipe to a thread that counts and stores them.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const lines[] = {"start\n", "listen\n", "stop\n"};

struct sink {
    int fd;
    atomic_size_t bytes;
    int error;
};

static void *sink_main(void *argument)
{
    struct sink *sink = argument;
    char chunk[16];

    for (;;) {
        ssize_t n = read(sink->fd, chunk, sizeof chunk);
        if (n == 0)
            return NULL;
        if (n < 0) {
            if (errno == EINTR)
                continue;
            sink->error = errno;
            return NULL;
        }
        atomic_fetch_add(&sink->bytes, (size_t)n);
    }
}

static size_t send_lines(int fd)
{
    size_t sent = 0;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ssize_t n = write(fd, lines[i], strlen(lines[i]));
        if (n > 0)
            sent += (size_t)n;
    }
    return sent;
}

int main(void)
{
    struct sink sink = {0};
    pthread_t thread;
    int ends[2];

    if (pipe(ends) != 0)
        return 2;
    sink.fd = ends[0];
    if (pthread_create(&thread, NULL, sink_main, &sink) != 0)
        return 2;
    size_t sent = send_lines(ends[1]);

    // Everything has arrived; what is left is to shut down.
    while (atomic_load(&sink.bytes) < sent)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    close(ends[1]); // the reader sees the end
    pthread_join(thread, NULL);
    close(ends[0]);

    if (sink.error) {
        fprintf(stderr, "sink: %s\n", strerror(sink.error));
        return 1;
    }
    printf("%zu bytes stored\n", sent);
    return 0;
}
