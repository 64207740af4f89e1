// Exercises objects that end: a thread uses one, main ends it; with a second argument the thread says too early that it is done.
// Expects "done" and exit status 0, recorded as it runs by itself.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    pthread_barrier_t barrier;
    sem_t semaphore;
    int ends[2];
    atomic_int done;
    const char *what;
    int early;
};

static int is(const struct shared *shared, const char *what)
{
    return strcmp(shared->what, what) == 0;
}

static void use(struct shared *shared)
{
    if (is(shared, "mutex") || is(shared, "freed")) {
        pthread_mutex_lock(&shared->mutex);
        pthread_mutex_unlock(&shared->mutex);
    } else if (is(shared, "condition")) {
        pthread_cond_signal(&shared->condition);
    } else if (is(shared, "rwlock")) {
        pthread_rwlock_rdlock(&shared->rwlock);
        pthread_rwlock_unlock(&shared->rwlock);
    } else if (is(shared, "spin")) {
        pthread_spin_lock(&shared->spin);
        pthread_spin_unlock(&shared->spin);
    } else if (is(shared, "barrier")) {
        pthread_barrier_wait(&shared->barrier);
    } else if (is(shared, "semaphore")) {
        sem_post(&shared->semaphore);
    } else if (write(shared->ends[1], "x", 1) != 1) {
        _exit(3);
    }
}

static void end(struct shared *shared)
{
    if (is(shared, "mutex"))
        pthread_mutex_destroy(&shared->mutex);
    else if (is(shared, "freed"))
        free(shared);
    else if (is(shared, "condition"))
        pthread_cond_destroy(&shared->condition);
    else if (is(shared, "rwlock"))
        pthread_rwlock_destroy(&shared->rwlock);
    else if (is(shared, "spin"))
        pthread_spin_destroy(&shared->spin);
    else if (is(shared, "barrier"))
        pthread_barrier_destroy(&shared->barrier);
    else if (is(shared, "semaphore"))
        sem_destroy(&shared->semaphore);
    else
        close(shared->ends[1]);
}

static void *worker(void *argument)
{
    struct shared *shared = argument;
    atomic_int *done = &shared->done;

    if (shared->early)
        atomic_store(done, 1);
    use(shared);
    if (!shared->early)
        atomic_store(done, 1);
    return NULL;
}

int main(int count, char **arguments)
{
    struct shared *shared = calloc(1, sizeof *shared);
    pthread_t thread;

    if (!shared || count < 2 || pipe(shared->ends) != 0)
        return 2;
    shared->what = arguments[1];
    shared->early = count > 2;
    pthread_mutex_init(&shared->mutex, NULL);
    pthread_cond_init(&shared->condition, NULL);
    pthread_rwlock_init(&shared->rwlock, NULL);
    pthread_spin_init(&shared->spin, 0);
    pthread_barrier_init(&shared->barrier, NULL, 1);
    sem_init(&shared->semaphore, 0, 0);
    if (pthread_create(&thread, NULL, worker, shared) != 0)
        return 2;
    while (!atomic_load(&shared->done))
        sched_yield();
    end(shared);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
