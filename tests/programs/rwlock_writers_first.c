// A read-write lock that prefers writers: a reader that comes again and again, and two writers.
// Both writes are there in the end.
// portent: stdout 2 writes
// portent: threads 4
// portent: ops acqs 3
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static int writes;

static void *reader(void *unused)
{
    for (int i = 0; i < 3; i++) {
        pthread_rwlock_rdlock(&lock);
        int seen = writes;
        pthread_rwlock_unlock(&lock);
        if (seen > 2)
            puts("too many");
    }
    return unused;
}

static void *writer(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    writes++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    pthread_create(&threads[2], NULL, writer, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d writes\n", writes);
    return 0;
}
