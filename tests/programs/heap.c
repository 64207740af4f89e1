// Every way to get and give back memory, in two threads at once, with contents checked.
// Prints how many blocks were checked.
// portent: threads 3
// portent: stdout 600 blocks
#define _GNU_SOURCE
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int blocks[2];

static void check(unsigned char *block, size_t size, unsigned char mark, int *count)
{
    assert(block && malloc_usable_size(block) >= size);
    for (size_t i = 0; i < size; i++)
        block[i] = mark;
    for (size_t i = 0; i < size; i++)
        assert(block[i] == mark);
    ++*count;
}

static void *work(void *argument)
{
    int *count = argument;
    for (int i = 1; i <= 30; i++) {
        size_t size = (size_t)i * 3;
        unsigned char mark = (unsigned char)(i + (count == &blocks[1]));
        unsigned char *a = malloc(size), *b = calloc(3, size), *c = aligned_alloc(64, 64);
        for (size_t k = 0; k < 3 * size; k++)
            assert(b[k] == 0);
        check(a, size, mark, count);
        check(b, 3 * size, mark, count);
        check(c, 64, mark, count);
        assert((uintptr_t)c % 64 == 0);
        a = realloc(a, 10 * size);
        assert(a[size - 1] == mark);
        check(a, 10 * size, mark, count);
        b = reallocarray(b, 2, 5);
        check(b, 10, mark, count);
        void *d;
        assert(posix_memalign(&d, 256, size) == 0 && (uintptr_t)d % 256 == 0);
        check(d, size, mark, count);
        unsigned char *e = memalign(128, size), *f = valloc(size), *g = pvalloc(size);
        check(e, size, mark, count);
        check(f, size, mark, count);
        check(g, size, mark, count);
        char *h = strdup("a string"), *p = NULL;
        assert(asprintf(&p, "%s %d", h, i) > 0);
        check((unsigned char *)h, 9, mark, count);
        free(a), free(b), free(c), free(d), free(e), free(f), free(g), free(h), free(p);
        free(NULL);
        free(realloc(NULL, size));
    }
    void *large = malloc(3 << 20);
    memset(large, 1, 3 << 20);
    free(large);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, &blocks[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d blocks\n", blocks[0] + blocks[1]);
    return 0;
}
