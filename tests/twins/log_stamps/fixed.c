// Access log: every request is stamped with the day on which it came in.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUESTS 2

struct entry {
    time_t when;
    const char *path;
    char stamp[24];
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry log_entries[REQUESTS];
static int log_length;

static void append(const struct entry *entry)
{
    pthread_mutex_lock(&log_lock);
    log_entries[log_length++] = *entry;
    pthread_mutex_unlock(&log_lock);
}

static void stamp(struct entry *entry)
{
    struct tm parts;
    gmtime_r(&entry->when, &parts);
    int year = parts.tm_year + 1900;
    snprintf(entry->stamp, sizeof entry->stamp, "%d-%d", year, parts.tm_yday + 1);
}

static void *handle(void *argument)
{
    struct entry *request = argument;
    stamp(request);
    append(request);
    return NULL;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

int main(void)
{
    struct entry requests[REQUESTS] = {
        {86400 * 3, "/index", ""},
        {86400 * 10000, "/status", ""},
    };
    pthread_t handlers[REQUESTS];

    for (int i = 0; i < REQUESTS; i++)
        if (pthread_create(&handlers[i], NULL, handle, &requests[i]) != 0)
            return EXIT_FAILURE;
    for (int i = 0; i < REQUESTS; i++)
        pthread_join(handlers[i], NULL);

    qsort(log_entries, log_length, sizeof log_entries[0], by_path);
    for (int i = 0; i < log_length; i++)
        printf("%s %s\n", log_entries[i].stamp, log_entries[i].path);
    return EXIT_SUCCESS;
}
