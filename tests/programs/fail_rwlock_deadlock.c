// Two readers of one lock both want to become its writer.
// Always deadlocks; Portent reports that both wait for it.
// portent: deadlock table
// portent: threads 3
#include <assert.h>
#include <pthread.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;

static void *upgrade(void *unused)
{
    pthread_rwlock_rdlock(&table);
    pthread_barrier_wait(&both);
    pthread_rwlock_wrlock(&table);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_barrier_init(&both, NULL, 2);
    assert(pthread_create(&a, NULL, upgrade, NULL) == 0);
    assert(pthread_create(&b, NULL, upgrade, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
