/* Clean twin of the hidden race and of the early publication
 * The courier counts parcels first and then hands them over by a semaphore that the clerk waits
 * for. Whoever starts first, the clerk reads what the courier wrote.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t handed_over;
static int parcels;

static void *courier(void *unused) {
    parcels = 12;
    sem_post(&handed_over);
    return unused;
}

static void *clerk(void *unused) {
    sem_wait(&handed_over);
    printf("%d parcels\n", parcels);
    assert(parcels == 12);
    return unused;
}

int main(void) {
    pthread_t a, b;
    sem_init(&handed_over, 0, 0);
    pthread_create(&a, NULL, courier, NULL);
    pthread_create(&b, NULL, clerk, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    sem_destroy(&handed_over);
    return 0;
}
