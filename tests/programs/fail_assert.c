// An assertion fails in a thread.
// The program dies by SIGABRT and says which assertion it was.
// portent: signal ABRT
// portent: threads 2
// portent: stderr Assertion `balance >= 0' failed
#include <assert.h>
#include <pthread.h>

static int balance = 10;

static void *withdraws(void *unused)
{
    (void)unused;
    balance -= 20;
    assert(balance >= 0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, withdraws, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
