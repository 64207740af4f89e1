// A hash table with chains: buckets by calloc, entries by malloc; an entry is removed and freed while another thread reads it.
// portent: object table::buckets[*] of table from hash_table.c:29
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *key;
    int value;
    struct entry *next;
};

struct table {
    size_t size;
    struct entry **buckets;
    pthread_mutex_t lock;
};

static size_t hash(const char *key, size_t size)
{
    size_t h = 5381;
    while (*key)
        h = h * 33 + (unsigned char)*key++;
    return h % size;
}

static struct table *table_new(size_t size)
{
    struct table *t = malloc(sizeof(*t));
    t->size = size;
    t->buckets = calloc(size, sizeof(struct entry *));
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void table_put(struct table *t, const char *key, int value)
{
    size_t at = hash(key, t->size);
    struct entry *e = malloc(sizeof(struct entry));
    e->key = strdup(key);
    e->value = value;
    pthread_mutex_lock(&t->lock);
    e->next = t->buckets[at];
    t->buckets[at] = e;
    pthread_mutex_unlock(&t->lock);
}

static struct entry *table_find(struct table *t, const char *key)
{
    struct entry *e;
    for (e = t->buckets[hash(key, t->size)]; e; e = e->next)
        if (strcmp(e->key, key) == 0)
            return e;
    return NULL;
}

static void table_remove(struct table *t, const char *key)
{
    pthread_mutex_lock(&t->lock);
    struct entry **link = &t->buckets[hash(key, t->size)];
    while (*link && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    if (*link) {
        struct entry *gone = *link;
        *link = gone->next;
        free(gone->key);
        free(gone);
    }
    pthread_mutex_unlock(&t->lock);
}

static void *reader(void *arg)
{
    struct entry *e = table_find(arg, "apple");
    return e && e->value > 3 ? arg : NULL;
}

static void *remover(void *arg)
{
    table_remove(arg, "apple");
    return NULL;
}

int main(void)
{
    struct table *t = table_new(8);
    table_put(t, "apple", 1);
    table_put(t, "pear", 2);
    pthread_t one, two;
    pthread_create(&one, NULL, reader, t);
    pthread_create(&two, NULL, remover, t);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
