// A thread divides by zero.
// The program dies by SIGFPE.
// portent: signal FPE
// portent: threads 2
#include <assert.h>
#include <pthread.h>

static volatile int zero, result;

static void *divides(void *unused)
{
    (void)unused;
    result = 100 / zero;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, divides, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
