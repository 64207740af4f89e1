/* A bug behind a branch that was not taken
 * Customers who come late are turned away and counted without a lock; in the recorded run nobody
 * is late. A replay takes the other branch, and in that run, in round 2, the race is found.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static int closed;
static int turned_away;

static void *customer(void *unused) {
    pthread_mutex_lock(&door);
    int late = closed;
    pthread_mutex_unlock(&door);
    if (late) {
        turned_away++; /* no lock */
    } else {
        printf("thank you for your order\n");
    }
    return unused;
}

static void *shop(void *unused) {
    pthread_mutex_lock(&door);
    closed = 1;
    pthread_mutex_unlock(&door);
    printf("closed, %d turned away\n", turned_away); /* no lock */
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, customer, NULL);
    pthread_create(&b, NULL, shop, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
