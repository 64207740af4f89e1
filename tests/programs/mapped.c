// Memory from mmap is shared by two threads, protected, unmapped, and mapped again at the same place.
// Prints the sum read back.
// portent: threads 3
// portent: stdout 4096 pages worth 4096, then 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20 };
static unsigned char *map;

static void *fill(void *half)
{
    for (int i = *(int *)half; i < SIZE; i += 512)
        map[i] = 1;
    return NULL;
}

static int sum(void)
{
    int total = 0;
    for (int i = 0; i < SIZE; i += 256)
        total += map[i];
    return total;
}

int main(void)
{
    map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(map != MAP_FAILED);
    int even = 0, odd = 256;
    pthread_t a, b;
    assert(pthread_create(&a, NULL, fill, &even) == 0);
    assert(pthread_create(&b, NULL, fill, &odd) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(mprotect(map, SIZE, PROT_READ) == 0);
    int first = sum();
    assert(munmap(map, SIZE) == 0);
    void *again = mmap(map, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert(again == map);
    printf("4096 pages worth %d, then %d\n", first, sum());
    return 0;
}
