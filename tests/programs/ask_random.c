// Asks the system for random bytes, and seeds generators by the time; what threads do depends on them.
// Prints numbers that differ from run to run; a replay prints the same again.
// portent: threads 3
// portent: stdout system * *
// portent: stdout seeded *
// portent: stdout steps *
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int steps;

static void *walks(void *unused)
{
    (void)unused;
    unsigned char count;
    assert(getrandom(&count, 1, 0) == 1);
    for (int i = 0; i < count % 64; i++) {
        pthread_mutex_lock(&lock);
        steps++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    unsigned a, b;
    assert(getrandom(&a, sizeof a, 0) == sizeof a);
    assert(getentropy(&b, sizeof b) == 0);
    printf("system %u %u\n", a, b);
    srand((unsigned)time(NULL) ^ (unsigned)getpid());
    srandom((unsigned)rand());
    printf("seeded %d %ld %.6f\n", rand(), random(), drand48());
    pthread_t one, two;
    assert(pthread_create(&one, NULL, walks, NULL) == 0);
    assert(pthread_create(&two, NULL, walks, NULL) == 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("steps %d\n", steps);
    return 0;
}
