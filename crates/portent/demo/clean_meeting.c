/* Clean twin of the lost wake-up
 * Cook and baker meet at a barrier, which remembers who has come: no arrival can be missed.
 * Before it each writes a value of its own, after it each reads the other's.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t meeting;
static int starter, dessert;

static void *cook(void *unused) {
    starter = 1;
    pthread_barrier_wait(&meeting);
    assert(dessert == 2);
    return unused;
}

static void *baker(void *unused) {
    dessert = 2;
    pthread_barrier_wait(&meeting);
    assert(starter == 1);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&a, NULL, cook, NULL);
    pthread_create(&b, NULL, baker, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_barrier_destroy(&meeting);
    printf("served\n");
    return 0;
}
