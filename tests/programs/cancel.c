// Threads are cancelled in a condition wait, in a sleep, in a read, at a test, and after cancellation was held off.
// Prints the order of clean-up handlers; the lock of the condition wait is given back by one of them.
// portent: threads 6
// portent: stdout cancelled in a condition wait: inner outer
// portent: stdout cancelled in a sleep: inner outer
// portent: stdout cancelled in a read: inner outer
// portent: stdout cancelled at a test: inner outer
// portent: stdout cancelled when allowed again: inner outer
// portent: stdout lock is free
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t ready, cancelled;
static int ends[2];

static void say(void *word)
{
    printf(" %s", (char *)word);
}

static void unlock(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

static void in_wait(void)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    sem_post(&ready);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(1);
}

static void in_sleep(void)
{
    sem_post(&ready);
    sleep(1000);
}

static void in_read(void)
{
    char byte;
    sem_post(&ready);
    read(ends[0], &byte, 1);
}

static void at_test(void)
{
    sem_post(&ready);
    sem_wait(&cancelled);
    pthread_testcancel();
}

static void when_allowed(void)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    sem_post(&ready);
    sem_wait(&cancelled);
    usleep(1000);
    pthread_setcancelstate(old, NULL);
    pthread_testcancel();
}

static void *run(void *part)
{
    pthread_cleanup_push(say, "outer");
    pthread_cleanup_push(say, "inner");
    (*(void (**)(void))part)();
    puts("not cancelled");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(const char *where, void (*part)(void))
{
    pthread_t thread;
    void *result;
    printf("cancelled %s:", where);
    assert(pthread_create(&thread, NULL, run, &part) == 0);
    sem_wait(&ready);
    assert(pthread_cancel(thread) == 0);
    sem_post(&cancelled);
    assert(pthread_join(thread, &result) == 0);
    assert(result == PTHREAD_CANCELED);
    puts("");
    if (part != at_test && part != when_allowed)
        sem_wait(&cancelled);
}

int main(void)
{
    sem_init(&ready, 0, 0);
    sem_init(&cancelled, 0, 0);
    assert(pipe(ends) == 0);
    cancel("in a condition wait", in_wait);
    cancel("in a sleep", in_sleep);
    cancel("in a read", in_read);
    cancel("at a test", at_test);
    cancel("when allowed again", when_allowed);
    assert(pthread_mutex_trylock(&lock) == 0);
    puts("lock is free");
    return 0;
}
