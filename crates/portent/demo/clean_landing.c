/* Clean twin of the landing
 * The controller waits for the radio check to be over before it asks the tower: after that, nobody
 * withdraws the permission any more.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

static sem_t checked;
static atomic_int permit;
static atomic_int landing;

static void *radio(void *unused) {
    permit = 0; /* no signal: no permission */
    sem_post(&checked);
    return unused;
}

static void *controller(void *unused) {
    sem_wait(&checked);
    permit = 1; /* the tower says yes */
    if (permit)
        landing = 1;
    return unused;
}

int main(void) {
    pthread_t a, b;
    sem_init(&checked, 0, 0);
    pthread_create(&a, NULL, radio, NULL);
    pthread_create(&b, NULL, controller, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("the plane has landed: %d\n", landing);
    return 0;
}
