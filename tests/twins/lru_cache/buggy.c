// A small LRU cache of rendered pages; a list, newest first.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 2

struct entry {
    struct entry *next;
    int key;
    char *page;
};

static struct cache {
    pthread_mutex_t lock;
    struct entry *newest;
    int count;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void evict_oldest_locked(void)
{
    struct entry **link = &cache.newest;

    while ((*link)->next)
        link = &(*link)->next;
    struct entry *oldest = *link;
    *link = NULL;
    cache.count--;
    free(oldest->page); // BUG
    free(oldest);
}

static void cache_put(int key, const char *page)
{
    struct entry *entry = malloc(sizeof *entry);

    if (!entry || !(entry->page = strdup(page)))
        abort();
    entry->key = key;
    pthread_mutex_lock(&cache.lock);
    entry->next = cache.newest;
    cache.newest = entry;
    if (++cache.count > CAPACITY)
        evict_oldest_locked();
    pthread_mutex_unlock(&cache.lock);
}

static const char *cache_find(int key)
{
    const char *page = NULL;

    pthread_mutex_lock(&cache.lock);
    for (struct entry *entry = cache.newest; entry; entry = entry->next)
        if (entry->key == key) {
            page = entry->page;
            break;
        }
    pthread_mutex_unlock(&cache.lock);
    return page;
}

static void *serve(void *argument)
{
    size_t *bytes = argument;
    const char *page = cache_find(1);

    if (page)
        while (page[*bytes]) // BUG
            ++*bytes;
    return NULL;
}

static void *publish(void *unused)
{
    cache_put(3, "<h1>news</h1>");
    return unused;
}

int main(void)
{
    pthread_t server, publisher;
    size_t bytes = 0;

    cache_put(1, "<p>hi");
    cache_put(2, "<p>about");
    if (pthread_create(&server, NULL, serve, &bytes) != 0 ||
        pthread_create(&publisher, NULL, publish, NULL) != 0)
        return 2;
    pthread_join(server, NULL);
    pthread_join(publisher, NULL);
    puts(bytes == 0 || bytes == 5 ? "served" : "garbled page");
    while (cache.count > 0)
        evict_oldest_locked();
    return bytes == 0 || bytes == 5 ? 0 : 1;
}
