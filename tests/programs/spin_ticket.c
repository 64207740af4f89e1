// A ticket lock keeps a shared log in order: three threads append lines.
// Prints the number of lines.
// portent: threads 4
// portent: stdout 12 lines
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sched.h>

struct ticket_lock { atomic_uint next, serving; };
static struct ticket_lock lock;
static char lines[16][16];
static int used;

static void take(struct ticket_lock *l)
{
    unsigned mine = atomic_fetch_add(&l->next, 1);
    while (atomic_load_explicit(&l->serving, memory_order_acquire) != mine)
        sched_yield();
}
static void give(struct ticket_lock *l)
{
    unsigned mine = atomic_load_explicit(&l->serving, memory_order_relaxed);
    atomic_store_explicit(&l->serving, mine + 1, memory_order_release);
}
static void *append(void *arg)
{
    for (int i = 0; i < 4; i++) {
        take(&lock);
        snprintf(lines[used], sizeof lines[used], "%d:%d", (int)(long)arg, i);
        used++;
        give(&lock);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, append, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("%d lines\n", used);
    return used == 12 ? 0 : 1;
}
