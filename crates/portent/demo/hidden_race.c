/* A race hidden by a lock
 * The courier counts parcels without a lock, then signs the book under one; the clerk signs, then
 * reads. This time the book went from courier to clerk. A clerk who signs first reads too early.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER;
static int parcels;

static void sign(const char *name) {
    pthread_mutex_lock(&book);
    printf("signed: %s\n", name);
    pthread_mutex_unlock(&book);
}

static void *courier(void *unused) {
    parcels = 12; /* no lock */
    sign("courier");
    return unused;
}

static void *clerk(void *unused) {
    sign("clerk");
    printf("%d parcels\n", parcels); /* no lock */
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, courier, NULL);
    pthread_create(&b, NULL, clerk, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
