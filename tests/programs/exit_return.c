// Main returns while two threads still have work to do: the process ends, but not before they are done or blocked.
// Prints what main knew; what the threads did is in the trace.
// portent: exit 3
// portent: threads 3
// portent: variable unjoined*
// portent: stdout main returns
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int unjoined[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *works(void *mine)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&lock);
        ++*(int *)mine;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, works, &unjoined[0]) == 0);
    assert(pthread_create(&thread, NULL, works, &unjoined[1]) == 0);
    puts("main returns");
    return 3;
}
