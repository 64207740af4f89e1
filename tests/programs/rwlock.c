// A read-write lock: two writers keep two numbers equal, three readers compare them; two readers are sure to hold it at once.
// Prints the numbers; no reader saw them differ.
// portent: threads 7
// portent: ops acqs 152
// portent: ops rels 152
// portent: ops acq 40
// portent: ops arr 2
// portent: stdout 40 40, never different
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;
static int left, right;

static void *writes(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++) {
        assert(pthread_rwlock_wrlock(&lock) == 0);
        left++;
        right++;
        assert(pthread_rwlock_unlock(&lock) == 0);
    }
    return NULL;
}

static void *reads(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        assert(pthread_rwlock_rdlock(&lock) == 0);
        assert(left == right);
        assert(pthread_rwlock_unlock(&lock) == 0);
    }
    return NULL;
}

static void *reads_together(void *unused)
{
    (void)unused;
    assert(pthread_rwlock_rdlock(&lock) == 0);
    pthread_barrier_wait(&both);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[6];
    pthread_barrier_init(&both, NULL, 2);
    assert(pthread_create(&threads[0], NULL, reads_together, NULL) == 0);
    reads_together(NULL);
    pthread_join(threads[0], NULL);
    for (int i = 0; i < 5; i++)
        assert(pthread_create(&threads[i], NULL, i < 2 ? writes : reads, NULL) == 0);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d, never different\n", left, right);
    return 0;
}
