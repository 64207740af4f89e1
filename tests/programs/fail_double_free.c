// A block is freed twice, and the C library finds out.
// The program dies by SIGABRT.
// portent: build -Wno-use-after-free
// portent: signal ABRT
// portent: threads 2
// portent: stderr free(): double free detected
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static char *block;

static void *frees(void *unused)
{
    (void)unused;
    free(block);
    free(block);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    block = malloc(100);
    block[0] = 1;
    assert(pthread_create(&thread, NULL, frees, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
