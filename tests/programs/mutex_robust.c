// Owners of robust mutexes die: the next owner learns of it, once by repairing the state, once by giving the mutex up.
// Prints what the next owners were told.
// portent: threads 4
// portent: stdout owner died, made consistent, works
// portent: stdout owner died, not recoverable
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static void *dies(void *lock)
{
    assert(pthread_mutex_lock(lock) == 0);
    return NULL;
}

static void *waits_for_the_dead(void *lock)
{
    assert(pthread_mutex_lock(lock) == EOWNERDEAD);
    assert(pthread_mutex_unlock(lock) == 0);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_t repaired, lost;
    pthread_mutex_init(&repaired, &robust);
    pthread_mutex_init(&lost, &robust);

    pthread_t thread;
    assert(pthread_create(&thread, NULL, dies, &repaired) == 0);
    pthread_join(thread, NULL);
    assert(pthread_mutex_lock(&repaired) == EOWNERDEAD);
    assert(pthread_mutex_consistent(&repaired) == 0);
    assert(pthread_mutex_unlock(&repaired) == 0);
    assert(pthread_mutex_trylock(&repaired) == 0);
    assert(pthread_mutex_unlock(&repaired) == 0);
    puts("owner died, made consistent, works");

    assert(pthread_create(&thread, NULL, dies, &lost) == 0);
    pthread_join(thread, NULL);
    assert(pthread_create(&thread, NULL, waits_for_the_dead, &lost) == 0);
    pthread_join(thread, NULL);
    assert(pthread_mutex_lock(&lost) == ENOTRECOVERABLE);
    puts("owner died, not recoverable");
    return 0;
}
