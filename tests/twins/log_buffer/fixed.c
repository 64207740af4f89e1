// In-memory log: threads append short lines to one buffer, which is written out
// in one go when it fills up and at exit.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_SIZE 96

struct log {
    pthread_mutex_t lock;
    size_t used;
    unsigned flushes;
    char text[LOG_SIZE];
};

static struct log app_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_flush_locked(struct log *log)
{
    fwrite(log->text, 1, log->used, stdout);
    log->used = 0;
    log->flushes++;
}

static void log_line(struct log *log, const char *format, ...)
{
    char line[48];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n > sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';

    pthread_mutex_lock(&log->lock);
    if (log->used + (size_t)n > sizeof log->text)
        log_flush_locked(log);
    memcpy(log->text + log->used, line, (size_t)n);
    log->used += (size_t)n;
    pthread_mutex_unlock(&log->lock);
}

struct worker {
    pthread_t thread;
    const char *name;
    int steps;
};

static void *work(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < worker->steps; i++)
        log_line(&app_log, "%s: step %d done", worker->name, i);
    return NULL;
}

int main(void)
{
    struct worker workers[] = {{.name = "fetch", .steps = 2}, {.name = "store", .steps = 2}};
    const size_t count = sizeof workers / sizeof workers[0];

    for (size_t i = 0; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    for (size_t i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);

    pthread_mutex_lock(&app_log.lock);
    log_flush_locked(&app_log);
    pthread_mutex_unlock(&app_log.lock);
    return 0;
}
