// Two deposits of which one is lost, and main finds out: a failure that a debugger is to show, in the program's own code.
#include <assert.h>
#include <pthread.h>

static int total;
static int deposits[2];

static void add(int amount)
{
    int was = total;      // reads
    total = was + amount; // writes
}

static void *deposit(void *which)
{
    add(1); // calls
    deposits[(long)which] = 1; // after
    return which;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, (void *)0);
    pthread_create(&b, NULL, deposit, (void *)1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(total == 2); // finds out
    return 0;
}
