// A named semaphore, opened twice, hands turns from one thread to another.
// Prints the turns.
// portent: threads 2
// portent: ops semw 10
// portent: ops post 10
// portent: stdout 10 turns
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static char name[64];

static void *posts(void *unused)
{
    (void)unused;
    sem_t *mine = sem_open(name, 0);
    assert(mine != SEM_FAILED);
    for (int i = 0; i < 10; i++)
        sem_post(mine);
    sem_close(mine);
    return NULL;
}

int main(void)
{
    snprintf(name, sizeof name, "/portent-test-%d", (int)getpid());
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    assert(semaphore != SEM_FAILED);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, posts, NULL) == 0);
    int turns = 0;
    while (turns < 10 && sem_wait(semaphore) == 0)
        turns++;
    pthread_join(thread, NULL);
    sem_close(semaphore);
    sem_unlink(name);
    printf("%d turns\n", turns);
    return 0;
}
