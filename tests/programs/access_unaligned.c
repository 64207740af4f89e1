// Accesses that are not aligned (packed fields), straddle a cache line, are bit-fields, or copy whole structures.
// Prints what two threads left behind.
// portent: threads 3
// portent: stdout packed 111 222, bits 5 9, copied 1000 of 1000
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct __attribute__((packed)) packed {
    char tag;
    uint64_t left;
    uint16_t gap;
    uint32_t right;
};

struct bits {
    unsigned low : 4, high : 4;
};

struct large {
    int numbers[50];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct packed packed;
static struct bits bits;
static struct large large;
static _Alignas(64) char line[128];
static int good;

static void *work(void *right)
{
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        if (right) {
            packed.right = 222;
            bits.high = 9;
        } else {
            packed.left = 111;
            bits.low = 5;
        }
        uint64_t straddling = 0x1122334455667788;
        memcpy(line + 60, &straddling, sizeof straddling);
        assert(*(uint64_t __attribute__((aligned(1))) *)(line + 60) == straddling);
        struct large mine;
        for (int k = 0; k < 50; k++)
            mine.numbers[k] = i + k;
        large = mine;
        struct large back = large;
        for (int k = 0; k < 50; k++)
            good += back.numbers[k] == i + k;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, work, NULL) == 0);
    assert(pthread_create(&b, NULL, work, &lock) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("packed %d %u, bits %u %u, copied %d of 1000\n", (int)packed.left, packed.right, bits.low, bits.high, good);
    return 0;
}
