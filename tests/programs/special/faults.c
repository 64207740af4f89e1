// What must not be done to memory and objects, one thing at a time: the first argument says which.
// Lines that a test expects something at end with a comment that names it.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    int value;
    int more[7];
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static struct node *node;
static sem_t ready, go;
static char global[64];
static int ends[2];

static struct node *make(void)
{
    struct node *made = calloc(1, sizeof *made); // made
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    return made;
}

static void drop(struct node *it)
{
    free(it); // dropped
}

static int read_after(void)
{
    drop(node);
    return node->more[1]; // read_after
}

static int write_after(void)
{
    drop(node);
    node->value = 4; // write_after
    return 0;
}

static int copy_after(void)
{
    drop(node);
    memcpy(global, node, 16); // copy_after
    return 0;
}

static int text_after(void)
{
    char *volatile text = strdup("hello"); // text_made
    free(text);
    return (int)strlen(text) - 5; // text_after
}

static int atomic_after(void)
{
    drop(node);
    __atomic_fetch_add(&node->value, 1, __ATOMIC_SEQ_CST); // atomic_after
    return 0;
}

static int realloc_after(void)
{
    char *volatile old = malloc(8), *grown;
    old[0] = 1;
    grown = realloc(old, 4000); // realloc_freed
    global[0] = old[0]; // realloc_after
    free(grown);
    return 0;
}

static int twice(void)
{
    drop(node);
    free(node); // twice
    return 0;
}

static int of_stack(void)
{
    long local[4] = {0};
    long *volatile pointer = local;
    free(pointer); // of_stack
    return 0;
}

static int of_inside(void)
{
    char *volatile pointer = (char *)node;
    free(pointer + 16); // of_inside
    return 0;
}

static int of_global(void)
{
    char *volatile pointer = global;
    free(pointer + 16); // of_global
    return 0;
}

static void *waits(void *unused)
{
    pthread_mutex_lock(&node->lock);
    sem_post(&ready);
    pthread_cond_wait(&node->changed, &node->lock);
    pthread_mutex_unlock(&node->lock);
    return unused;
}

static void *holds(void *unused)
{
    pthread_mutex_lock(&node->lock);
    sem_post(&ready);
    sem_wait(&go);
    pthread_mutex_unlock(&node->lock); // unlock_after
    return unused;
}

static void begin(void *(*routine)(void *))
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, routine, NULL) == 0);
    pthread_detach(thread);
    sem_wait(&ready);
}

static int free_waited(void)
{
    begin(waits);
    pthread_mutex_lock(&node->lock);
    pthread_mutex_unlock(&node->lock);
    free(node); // free_waited
    _exit(0);
}

static int free_held(void)
{
    begin(holds);
    free(node); // free_held
    sem_post(&go);
    return 0;
}

static int destroy_held(void)
{
    begin(holds);
    assert(pthread_mutex_destroy(&node->lock) == EBUSY); // destroy_held
    sem_post(&go);
    return 0;
}

static int destroy_waited(void)
{
    begin(waits);
    pthread_mutex_lock(&node->lock);
    pthread_mutex_unlock(&node->lock);
    pthread_cond_destroy(&node->changed); // destroy_waited
    _exit(0);
}

static int lock_destroyed(void)
{
    pthread_mutex_destroy(&node->lock); // destroyed
    assert(pthread_mutex_lock(&node->lock) == EINVAL); // lock_destroyed
    return 0;
}

static int signal_destroyed(void)
{
    pthread_cond_destroy(&node->changed);
    pthread_cond_signal(&node->changed); // signal_destroyed
    return 0;
}

static int post_destroyed(void)
{
    sem_destroy(&go);
    sem_post(&go); // post_destroyed
    return 0;
}

static int rwlock_destroyed(void)
{
    pthread_rwlock_t lock;
    pthread_rwlock_init(&lock, NULL);
    pthread_rwlock_destroy(&lock);
    pthread_rwlock_rdlock(&lock); // rwlock_destroyed
    return 0;
}

static void *reads(void *unused)
{
    char byte;
    sem_post(&ready);
    if (read(ends[0], &byte, 1) < 0)
        sem_post(&go);
    return unused;
}

static int close_used(void)
{
    assert(pipe(ends) == 0);
    begin(reads);
    usleep(1000);
    close(ends[0]); // close_used
    _exit(0);
}

static void *closes(void *unused)
{
    close(ends[1]); // closed
    sem_post(&ready);
    return unused;
}

static int use_closed(void)
{
    assert(pipe(ends) == 0);
    begin(closes);
    assert(write(ends[1], "x", 1) == -1); // use_closed
    return 0;
}

static int fault_of_null(void)
{
    int *volatile nowhere = (int *)0x1000;
    return *nowhere; // fault_of_null
}

static int fault_in_library(void)
{
    char *volatile nowhere = (char *)0x1000;
    return (int)strlen(nowhere); // fault_in_library
}

static int aborts(void)
{
    abort(); // aborts
}

static int fails(void)
{
    assert(node == NULL); // fails
    return 0;
}

#define CASE(name) { #name, name }
static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    CASE(read_after), CASE(write_after), CASE(copy_after), CASE(text_after), CASE(atomic_after), CASE(realloc_after),
    CASE(twice), CASE(of_stack), CASE(of_inside), CASE(of_global), CASE(free_waited), CASE(free_held),
    CASE(destroy_held), CASE(destroy_waited), CASE(lock_destroyed), CASE(signal_destroyed), CASE(post_destroyed),
    CASE(rwlock_destroyed), CASE(close_used), CASE(use_closed), CASE(fault_of_null), CASE(fault_in_library),
    CASE(aborts), CASE(fails),
};

int main(int count, char **arguments)
{
    sem_init(&ready, 0, 0);
    sem_init(&go, 0, 0);
    node = make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (count > 1 && strcmp(arguments[1], cases[i].name) == 0)
            return cases[i].run() & 0;
    return 1;
}
