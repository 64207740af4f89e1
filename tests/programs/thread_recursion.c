// Two threads recurse 20,000 calls deep, and unwind half of it by longjmp.
// Prints how deep they were.
// portent: threads 3
// portent: stdout depth 20000, back at 10000
// portent: stdout depth 20000, back at 10000
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

struct state {
    jmp_buf half;
    volatile int deepest;
};

static int descend(struct state *state, int depth)
{
    if (depth == 20000) {
        state->deepest = depth;
        longjmp(state->half, 1);
    }
    if (depth == 10000 && setjmp(state->half))
        return depth;
    return descend(state, depth + 1) + (depth > 10000);
}

static void *run(void *unused)
{
    (void)unused;
    struct state state = {.deepest = 0};
    int back = descend(&state, 1);
    printf("depth %d, back at %d\n", state.deepest, back);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, run, NULL) == 0);
    assert(pthread_create(&b, NULL, run, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
