// Thread-local variables and keys with destructors, one of which sets the key again and so runs twice.
// Prints how often destructors ran, and that no thread saw another's values.
// portent: threads 4
// portent: stdout own values only, plain 3, stubborn 6
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t plain, stubborn;
static atomic_int plain_ran, stubborn_ran;
static __thread int mine = 5;
static __thread char buffer[100];

static void destroy_plain(void *block)
{
    plain_ran++;
    free(block);
}

static void destroy_stubborn(void *round)
{
    stubborn_ran++;
    if ((intptr_t)round == 1)
        pthread_setspecific(stubborn, (void *)2);
}

static void *work(void *argument)
{
    assert(mine == 5 && pthread_getspecific(plain) == NULL);
    mine = (int)(intptr_t)argument;
    snprintf(buffer, sizeof buffer, "%d", mine);
    int *block = malloc(sizeof *block);
    *block = mine;
    pthread_setspecific(plain, block);
    pthread_setspecific(stubborn, (void *)1);
    sched_yield();
    assert(mine == (int)(intptr_t)argument && atoi(buffer) == mine);
    assert(*(int *)pthread_getspecific(plain) == mine);
    return NULL;
}

int main(void)
{
    pthread_key_create(&plain, destroy_plain);
    pthread_key_create(&stubborn, destroy_stubborn);
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_key_delete(plain);
    pthread_key_delete(stubborn);
    printf("own values only, plain %d, stubborn %d\n", plain_ran, stubborn_ran);
    return 0;
}
