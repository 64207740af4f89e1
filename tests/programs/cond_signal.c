// A condition variable and a flag, ping-pong between two threads; every wait is for the other's signal.
// Prints the number of turns.
// portent: threads 3
// portent: ops slp 1+
// portent: ops wak 1+
// portent: ops ntf 40
// portent: stdout 40 turns
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void *play(void *argument)
{
    int mine = (int)(intptr_t)argument;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        while (turn % 2 != mine)
            assert(pthread_cond_wait(&turned, &lock) == 0);
        turn++;
        assert(pthread_cond_signal(&turned) == 0);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, play, (void *)0) == 0);
    assert(pthread_create(&b, NULL, play, (void *)1) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d turns\n", turn);
    return 0;
}
