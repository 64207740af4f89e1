// Threads touch the same memory with accesses of different sizes: bytes and halves of a word, through a union and pointers.
// Prints the word; every byte was written by its own thread or under a lock.
// portent: threads 5
// portent: variable shared*
// portent: stdout 04030201 after bytes, 0605 and 0807 after halves, sum 26
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

union word {
    uint32_t whole;
    uint16_t half[2];
    uint8_t byte[4];
};

static union word shared;
static uint64_t wide;

static void *write_byte(void *argument)
{
    int i = (int)(intptr_t)argument;
    shared.byte[i] = (uint8_t)(i + 1);
    *((uint8_t *)&wide + 2 * i) = (uint8_t)(i + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, write_byte, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert(wide == 0x0004000300020001);
    printf("%08x after bytes, ", shared.whole);
    shared.half[0] = 0x0605;
    shared.half[1] = 0x0807;
    printf("%04x and %04x after halves, ", shared.whole & 0xffff, shared.whole >> 16);
    printf("sum %d\n", shared.byte[0] + shared.byte[1] + shared.byte[2] + shared.byte[3]);
    return 0;
}
