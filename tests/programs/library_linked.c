// Globals and a lock of a shared library that is linked; threads use them and are named by the library's symbols.
// Prints the tally.
// portent: library tally linked
// portent: threads 3
// portent: variable tally_total
// portent: variable tally_calls
// portent: lock tally_lock
// portent: stdout 40 calls, total 780
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

extern int tally_total;
int tally_add(int number);
int tally_count(void);

static void *adds(void *start)
{
    for (int i = 0; i < 20; i++)
        tally_add(*(int *)start + i);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    int zero = 0, twenty = 20;
    assert(pthread_create(&a, NULL, adds, &zero) == 0);
    assert(pthread_create(&b, NULL, adds, &twenty) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d calls, total %d\n", tally_count(), tally_total);
    return 0;
}
