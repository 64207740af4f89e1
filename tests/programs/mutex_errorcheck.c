// An error-checking mutex refuses what a normal one would hang on or damage: relock, unlock by another, unlock when free.
// Prints the errors; all of them come back to the program, none ends it.
// portent: threads 2
// portent: stdout relock EDEADLK, foreign unlock EPERM, second unlock EPERM, destroy EBUSY
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock;
static int foreign;

static void *unlocks(void *unused)
{
    (void)unused;
    foreign = pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &checked);
    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_mutex_lock(&lock) == EDEADLK);
    assert(pthread_mutex_trylock(&lock) == EBUSY);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, unlocks, NULL) == 0);
    pthread_join(thread, NULL);
    assert(foreign == EPERM);
    assert(pthread_mutex_destroy(&lock) == EBUSY);
    assert(pthread_mutex_unlock(&lock) == 0);
    assert(pthread_mutex_unlock(&lock) == EPERM);
    assert(pthread_mutex_destroy(&lock) == 0);
    puts("relock EDEADLK, foreign unlock EPERM, second unlock EPERM, destroy EBUSY");
    return 0;
}
