// A pointer is published before what it points to is filled in.
// Prints 0 or 42 in nearly every native run; in some orders the reader sees the unfinished thing, 7.
// portent: threads 3
// portent: variable published
// portent: stdout saw *
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct thing {
    int value;
};

static _Atomic(struct thing *) published;
static int saw;

static void *publishes(void *unused)
{
    struct thing *thing = malloc(sizeof *thing);
    thing->value = 7;
    published = thing;
    thing->value = 42;
    return unused;
}

static void *reads(void *unused)
{
    struct thing *thing = published;
    if (thing)
        saw = thing->value;
    return unused;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, publishes, NULL) == 0);
    assert(pthread_create(&b, NULL, reads, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("saw %d\n", saw);
    free(published);
    return 0;
}
