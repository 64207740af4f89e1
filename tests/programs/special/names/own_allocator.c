// Memory comes from functions of the program's own, as in most C programs; what it is for, only their callers know.
// portent: object tab->head
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    int key;
    struct entry *next;
};

struct table {
    pthread_mutex_t lock;
    struct entry *head;
    int count;
};

__attribute__((noinline)) static void *xmalloc(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL)
        abort();
    return memset(memory, 0, size);
}

static struct table *table_new(void) {
    struct table *t = xmalloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static struct table *tab;

static void *insert(void *key) {
    struct entry *e = xmalloc(sizeof *e);
    e->key = *(int *)key;
    e->next = tab->head;
    pthread_mutex_lock(&tab->lock);
    tab->head = e;
    tab->count++;
    pthread_mutex_unlock(&tab->lock);
    return NULL;
}

int main(void) {
    int keys[2] = {1, 2};
    pthread_t threads[2];
    tab = table_new();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, insert, &keys[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d entries\n", tab->count);
}
