// Bounded buffer between two readers of sensors and one uploader.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define CAPACITY 1

static struct buffer {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    int items[CAPACITY];
    int first, count;
} buffer = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
};

static void put(int item)
{
    pthread_mutex_lock(&buffer.lock);
    while (buffer.count == CAPACITY)
        pthread_cond_wait(&buffer.not_full, &buffer.lock);
    buffer.items[(buffer.first + buffer.count) % CAPACITY] = item;
    buffer.count++;
    pthread_cond_signal(&buffer.not_empty);
    pthread_mutex_unlock(&buffer.lock);
}

static int take(void)
{
    pthread_mutex_lock(&buffer.lock);
    while (buffer.count == 0)
        pthread_cond_wait(&buffer.not_empty, &buffer.lock);
    int item = buffer.items[buffer.first];
    buffer.first = (buffer.first + 1) % CAPACITY;
    buffer.count--;
    pthread_cond_signal(&buffer.not_full);
    pthread_mutex_unlock(&buffer.lock);
    return item;
}

struct sensor {
    pthread_t thread;
    int base, readings;
    long interval_ms;
};

static void *sample(void *argument)
{
    struct sensor *sensor = argument;

    for (int i = 0; i < sensor->readings; i++) {
        nanosleep(&(struct timespec){.tv_nsec = sensor->interval_ms * 1000000}, NULL);
        put(sensor->base + i);
    }
    return NULL;
}

static void *upload(void *argument)
{
    int *sum = argument;

    for (int i = 0; i < 3; i++)
        *sum += take();
    return NULL;
}

int main(void)
{
    struct sensor sensors[] = {
        {.base = 100, .readings = 2, .interval_ms = 10},
        {.base = 200, .readings = 1, .interval_ms = 15},
    };
    pthread_t uploader;
    int sum = 0;

    if (pthread_create(&uploader, NULL, upload, &sum) != 0)
        return 2;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&sensors[i].thread, NULL, sample, &sensors[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(sensors[i].thread, NULL);
    pthread_join(uploader, NULL);
    printf("uploaded %d\n", sum);
    return 0;
}
