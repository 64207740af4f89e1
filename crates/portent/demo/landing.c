/* A property broken: landing without permission
 * The tower permits the landing; the pilot looks and lands. Meanwhile the radio check withdraws the
 * permission: nothing is torn, no two accesses race, but the plane can land after it was withdrawn.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int permit;
static atomic_int landing;

static void *radio(void *unused) {
    permit = 0; /* no signal: no permission */
    return unused;
}

static void *controller(void *unused) {
    permit = 1; /* the tower says yes */
    if (permit)
        landing = 1;
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, radio, NULL);
    pthread_create(&b, NULL, controller, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("the plane has landed: %d\n", landing);
    return 0;
}
