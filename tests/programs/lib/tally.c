// A shared library with a global, a static and a lock of its own; used by library_linked.c and library_opened.c.
// Has no result of its own.
#include <pthread.h>

int tally_total;
static int tally_calls;
static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;

int tally_add(int number)
{
    pthread_mutex_lock(&tally_lock);
    tally_calls++;
    int total = tally_total += number;
    pthread_mutex_unlock(&tally_lock);
    return total;
}

int tally_count(void)
{
    pthread_mutex_lock(&tally_lock);
    int calls = tally_calls;
    pthread_mutex_unlock(&tally_lock);
    return calls;
}
