// Disk quota: uploads add to the usage of their user.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct quota {
    pthread_mutex_t lock;
    long limit;
    long used;
};

static struct quota quota = {PTHREAD_MUTEX_INITIALIZER, 1000, 0};

static bool quota_charge(struct quota *q, long bytes)
{
    pthread_mutex_lock(&q->lock);
    bool fits = q->used + bytes <= q->limit;
    if (fits)
        q->used += bytes;
    pthread_mutex_unlock(&q->lock);
    return fits;
}

struct upload {
    pthread_t thread;
    const long *parts;
    int count;
    long stored;
};

static void *run_upload(void *argument)
{
    struct upload *upload = argument;

    for (int i = 0; i < upload->count; i++)
        if (quota_charge(&quota, upload->parts[i]))
            upload->stored += upload->parts[i];
    return NULL;
}

int main(void)
{
    static const long photos[] = {120, 80}, videos[] = {400};
    struct upload uploads[] = {{.parts = photos, .count = 2}, {.parts = videos, .count = 1}};
    long stored = 0;

    for (int i = 0; i < 2; i++)
        if (pthread_create(&uploads[i].thread, NULL, run_upload, &uploads[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++) {
        pthread_join(uploads[i].thread, NULL);
        stored += uploads[i].stored;
    }
    printf("stored %ld, charged %ld\n", stored, quota.used);
    return quota.used == stored ? 0 : 1;
}
