// A routing table that is read often. Its lock prefers writers, so that updates do not starve.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTES 3

struct table {
    pthread_rwlock_t lock;
    int hops[ROUTES];
    int version;
};

static struct table table = {.hops = {4, 2, 7}};

static int make(struct table *new)
{
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes) != 0)
        return -1;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int result = pthread_rwlock_init(&new->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return result;
}

static int hops(struct table *from, int route)
{
    // The caller has the lock.
    return from->hops[route];
}

static int nearest(struct table *from)
{
    int best = 0;
    pthread_rwlock_rdlock(&from->lock);
    for (int route = 1; route < ROUTES; route++)
        if (hops(from, route) < hops(from, best))
            best = route;
    pthread_rwlock_unlock(&from->lock);
    return best;
}

static void *forward(void *found)
{
    *(int *)found = nearest(&table);
    return NULL;
}

static void *update(void *unused)
{
    pthread_rwlock_wrlock(&table.lock);
    table.hops[0] = 5;
    table.version++;
    pthread_rwlock_unlock(&table.lock);
    return unused;
}

int main(void)
{
    pthread_t forwarding, updating;
    int found = -1;

    if (make(&table) != 0)
        return EXIT_FAILURE;
    if (pthread_create(&forwarding, NULL, forward, &found) != 0)
        return EXIT_FAILURE;
    if (pthread_create(&updating, NULL, update, NULL) != 0)
        return EXIT_FAILURE;
    pthread_join(forwarding, NULL);
    pthread_join(updating, NULL);
    pthread_rwlock_destroy(&table.lock);
    printf("route %d, version %d\n", found, table.version);
    return EXIT_SUCCESS;
}
