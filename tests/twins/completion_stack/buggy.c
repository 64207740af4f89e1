// Requests to a device thread. The caller waits for each on its own stack.
#include <pthread.h>
#include <stdio.h>

struct request {
    struct request *next;
    int argument, result;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    int done;
};

static struct device {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct request *pending;
    int closing;
} device = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0};

static void complete(struct request *request, int result)
{
    pthread_mutex_lock(&request->lock);
    request->result = result;
    request->done = 1;
    pthread_mutex_unlock(&request->lock);
    pthread_cond_signal(&request->done_cond); // BUG
}

static void *device_main(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&device.lock);
        while (!device.pending && !device.closing)
            pthread_cond_wait(&device.wake, &device.lock);
        struct request *request = device.pending;
        if (request)
            device.pending = request->next;
        pthread_mutex_unlock(&device.lock);
        if (!request)
            return unused;
        complete(request, request->argument * request->argument);
    }
}

static int device_call(int argument)
{
    struct request request = {.argument = argument};

    pthread_mutex_init(&request.lock, NULL);
    pthread_cond_init(&request.done_cond, NULL);

    pthread_mutex_lock(&device.lock);
    request.next = device.pending;
    device.pending = &request;
    pthread_cond_signal(&device.wake);
    pthread_mutex_unlock(&device.lock);

    pthread_mutex_lock(&request.lock);
    while (!request.done)
        pthread_cond_wait(&request.done_cond, &request.lock);
    pthread_mutex_unlock(&request.lock);

    pthread_cond_destroy(&request.done_cond); // BUG
    pthread_mutex_destroy(&request.lock); // BUG
    return request.result;
}

int main(void)
{
    pthread_t thread;
    int results[2];

    if (pthread_create(&thread, NULL, device_main, NULL) != 0)
        return 2;
    for (int i = 0; i < 2; i++)
        results[i] = device_call(i + 3);

    pthread_mutex_lock(&device.lock);
    device.closing = 1;
    pthread_cond_signal(&device.wake);
    pthread_mutex_unlock(&device.lock);
    pthread_join(thread, NULL);
    printf("%d %d\n", results[0], results[1]);
    return 0;
}
