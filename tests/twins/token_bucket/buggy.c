// Rate limiter: a bucket of tokens, refilled by a timer thread.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define BURST 3

static struct bucket {
    pthread_mutex_t lock;
    int tokens;
    unsigned long refused;
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER, .tokens = BURST};

static void bucket_refill(struct bucket *b, int tokens)
{
    pthread_mutex_lock(&b->lock);
    b->tokens += tokens; // BUG
    if (b->tokens > BURST)
        b->tokens = BURST;
    pthread_mutex_unlock(&b->lock);
}

static bool bucket_take(struct bucket *b)
{
    bool taken = false;

    // Under attack the bucket is empty nearly all the time: refuse quickly.
    if (b->tokens == 0) // BUG
        return false;
    pthread_mutex_lock(&b->lock);
    if (b->tokens > 0) {
        b->tokens--; // BUG
        taken = true;
    } else {
        b->refused++;
    }
    pthread_mutex_unlock(&b->lock);
    return taken;
}

struct client {
    pthread_t thread;
    int requests;
    int served;
};

static void *run_client(void *argument)
{
    struct client *client = argument;

    for (int i = 0; i < client->requests; i++)
        client->served += bucket_take(&bucket);
    return NULL;
}

static void *run_timer(void *unused)
{
    for (int tick = 0; tick < 2; tick++)
        bucket_refill(&bucket, 1);
    return unused;
}

int main(void)
{
    struct client clients[2] = {{.requests = 2}, {.requests = 2}};
    pthread_t timer;
    int served = 0;

    if (pthread_create(&timer, NULL, run_timer, NULL) != 0)
        return 2;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++) {
        pthread_join(clients[i].thread, NULL);
        served += clients[i].served;
    }
    pthread_join(timer, NULL);

    if (served > BURST + 2) {
        fprintf(stderr, "%d served\n", served);
        return 1;
    }
    puts("within the limit");
    return 0;
}
