// Mutexes of unusual make: adaptive, priority-inheriting, shared between processes, hand-over-hand inside a list.
// Prints the exact sum.
// portent: threads 4
// portent: stdout 150 150 150 and the list has 30
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct node {
    pthread_mutex_t lock;
    struct node *next;
};

static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t inheriting;
static pthread_mutex_t *shared;
static int count[3];
static struct node head = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void raise_under(pthread_mutex_t *lock, int *counter)
{
    pthread_mutex_lock(lock);
    ++*counter;
    pthread_mutex_unlock(lock);
}

// Locks are released in the order they were taken, not nested.
static void append(void)
{
    struct node *last = &head;
    pthread_mutex_lock(&last->lock);
    while (last->next) {
        struct node *next = last->next;
        pthread_mutex_lock(&next->lock);
        pthread_mutex_unlock(&last->lock);
        last = next;
    }
    last->next = calloc(1, sizeof(struct node));
    pthread_mutex_init(&last->next->lock, NULL);
    pthread_mutex_unlock(&last->lock);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        raise_under(&adaptive, &count[0]);
        raise_under(&inheriting, &count[1]);
        raise_under(shared, &count[2]);
        if (i < 10)
            append();
    }
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &attributes);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(shared != MAP_FAILED);
    pthread_mutex_init(shared, &attributes);

    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    int length = 0;
    for (struct node *n = head.next; n; n = n->next)
        length++;
    printf("%d %d %d and the list has %d\n", count[0], count[1], count[2], length);
    return 0;
}
