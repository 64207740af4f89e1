// Seven threads insert into and delete from a hash table with a spin lock per bucket, and wake a sweeper for what they deleted.
// Prints what is left. The argument is how many operations each thread makes.
// portent: args 180
// portent: threads 9
// portent: stdout inserted 840, deleted 420, left 420, swept all
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 7, BUCKETS = 16 };

struct entry {
    int key;
    char *text;
    struct entry *next;
};

struct bucket {
    pthread_spinlock_t lock;
    struct entry *first;
};

static struct bucket buckets[BUCKETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dirty = PTHREAD_COND_INITIALIZER;
static struct entry *deleted;
static int finished;
static atomic_int inserted, removed, swept;
static sem_t tickets;
static int operations;

static void make_table(void)
{
    for (int i = 0; i < BUCKETS; i++)
        pthread_spin_init(&buckets[i].lock, PTHREAD_PROCESS_PRIVATE);
}

static void insert(int key)
{
    struct entry *entry = malloc(sizeof *entry);
    char text[32];
    snprintf(text, sizeof text, "entry %d", key);
    entry->key = key;
    entry->text = strdup(text);
    struct bucket *bucket = &buckets[key % BUCKETS];
    while (pthread_spin_trylock(&bucket->lock) != 0)
        sched_yield();
    entry->next = bucket->first;
    bucket->first = entry;
    pthread_spin_unlock(&bucket->lock);
    inserted++;
}

static void delete(int key)
{
    struct bucket *bucket = &buckets[key % BUCKETS];
    pthread_spin_lock(&bucket->lock);
    struct entry **place = &bucket->first;
    while ((*place)->key != key)
        place = &(*place)->next;
    struct entry *entry = *place;
    *place = entry->next;
    pthread_spin_unlock(&bucket->lock);
    removed++;
    pthread_mutex_lock(&lock);
    entry->next = deleted;
    deleted = entry;
    pthread_cond_signal(&dirty);
    pthread_mutex_unlock(&lock);
}

static void *sweep(void *unused)
{
    pthread_mutex_lock(&lock);
    while (deleted || !finished) {
        while (!deleted && !finished)
            pthread_cond_wait(&dirty, &lock);
        struct entry *list = deleted;
        deleted = NULL;
        pthread_mutex_unlock(&lock);
        while (list) {
            struct entry *next = list->next;
            assert(atoi(list->text + 6) == list->key);
            free(list->text);
            free(list);
            list = next;
            swept++;
        }
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;
    pthread_once(&once, make_table);
    // Two inserts, then the first of them is deleted.
    for (int i = 0; i < operations; i++) {
        int key = (i / 3 * 2) * THREADS + me;
        sem_wait(&tickets);
        if (i % 3 == 2)
            delete(key);
        else
            insert(key + i % 3 * THREADS);
        sem_post(&tickets);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    operations = argc > 1 ? atoi(argv[1]) : 180;
    sem_init(&tickets, 0, 4);
    pthread_t threads[THREADS], sweeper;
    assert(pthread_create(&sweeper, NULL, sweep, NULL) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&lock);
    finished = 1;
    pthread_cond_signal(&dirty);
    pthread_mutex_unlock(&lock);
    pthread_join(sweeper, NULL);
    int left = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *e = buckets[i].first; e; e = e->next)
            left++;
    printf("inserted %d, deleted %d, left %d, swept %s\n", inserted, removed, left, swept == removed ? "all" : "some");
    return 0;
}
