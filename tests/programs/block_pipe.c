// One thread writes numbers to a pipe, more than it holds at once; another reads them. Both block in the kernel.
// Prints the sum.
// portent: threads 3
// portent: stdout 20000 numbers, sum 199990000
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 20000, CHUNK = 500 };
static int ends[2];
static long numbers, sum;

static void *writes(void *unused)
{
    (void)unused;
    int chunk[CHUNK];
    for (int i = 0; i < COUNT; i += CHUNK) {
        for (int k = 0; k < CHUNK; k++)
            chunk[k] = i + k;
        assert(write(ends[1], chunk, sizeof chunk) == sizeof chunk);
    }
    assert(close(ends[1]) == 0);
    return NULL;
}

static void *reads(void *unused)
{
    (void)unused;
    int number;
    while (read(ends[0], &number, sizeof number) == sizeof number) {
        numbers++;
        sum += number;
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pipe(ends) == 0);
    assert(pthread_create(&a, NULL, writes, NULL) == 0);
    assert(pthread_create(&b, NULL, reads, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%ld numbers, sum %ld\n", numbers, sum);
    return 0;
}
