// Threads with attributes of their own: a large stack that is used, a stack that the program provides, a guard size.
// Prints the deepest byte that was written.
// portent: threads 3
// portent: stdout used 3000000 of 4194304
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *uses_much(void *unused)
{
    (void)unused;
    pthread_attr_t mine;
    void *start;
    size_t size;
    assert(pthread_getattr_np(pthread_self(), &mine) == 0);
    assert(pthread_attr_getstack(&mine, &start, &size) == 0);
    pthread_attr_destroy(&mine);
    char local[3000000];
    memset(local, 1, sizeof local);
    assert((char *)start <= local && local + sizeof local <= (char *)start + size);
    int used = 0;
    for (size_t i = 0; i < sizeof local; i += 1000)
        used += local[i] * 1000;
    printf("used %d of %zu\n", used, size);
    return NULL;
}

static void *on_given_stack(void *stack)
{
    char local[100];
    assert((char *)stack <= local && local < (char *)stack + (1 << 20));
    return NULL;
}

int main(void)
{
    pthread_t large, given;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 4 << 20);
    pthread_attr_setguardsize(&attributes, 1 << 16);
    assert(pthread_create(&large, &attributes, uses_much, NULL) == 0);
    assert(pthread_join(large, NULL) == 0);
    pthread_attr_destroy(&attributes);

    void *stack = aligned_alloc(4096, 1 << 20);
    pthread_attr_init(&attributes);
    assert(pthread_attr_setstack(&attributes, stack, 1 << 20) == 0);
    assert(pthread_create(&given, &attributes, on_given_stack, stack) == 0);
    assert(pthread_join(given, NULL) == 0);
    pthread_attr_destroy(&attributes);
    free(stack);
    return 0;
}
