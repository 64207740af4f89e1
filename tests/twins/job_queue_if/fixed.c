// Jobs for two workers: a linked queue behind a mutex and a condition.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS 4
#define WORKERS 2

struct job {
    struct job *next;
    int number;
};

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct job *head, **tail;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &queue.head};

static void queue_put(int number)
{
    struct job *job = malloc(sizeof *job);

    if (!job)
        abort();
    job->number = number;
    job->next = NULL;
    pthread_mutex_lock(&queue.lock);
    *queue.tail = job;
    queue.tail = &job->next;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

static struct job *queue_take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.head)
        pthread_cond_wait(&queue.filled, &queue.lock);
    struct job *job = queue.head;
    queue.head = job->next;
    if (!queue.head)
        queue.tail = &queue.head;
    pthread_mutex_unlock(&queue.lock);
    return job;
}

struct worker {
    pthread_t thread;
    int sum;
};

static void *work(void *argument)
{
    struct worker *worker = argument;

    for (int i = 0; i < JOBS / WORKERS; i++) {
        struct job *job = queue_take();
        worker->sum += job->number;
        free(job);
    }
    return NULL;
}

int main(void)
{
    struct worker workers[WORKERS] = {0};
    int sum = 0;

    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    for (int number = 1; number <= JOBS; number++)
        queue_put(number);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].sum;
    }
    printf("sum of all jobs: %d\n", sum);
    return sum == JOBS * (JOBS + 1) / 2 ? 0 : 1;
}
