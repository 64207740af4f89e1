/* A lost wake-up
 * The waiter waits for the bell, and nothing but the bell says that the meal is ready.
 * A bell that rings before the waiter listens is not heard, and he waits for ever.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t kitchen = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

static void *waiter(void *unused) {
    pthread_mutex_lock(&kitchen);
    pthread_cond_wait(&bell, &kitchen); /* no `while (!ready)` around it */
    printf("served\n");
    pthread_mutex_unlock(&kitchen);
    return unused;
}

static void *cook(void *unused) {
    pthread_mutex_lock(&kitchen);
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&kitchen);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, waiter, NULL);
    pthread_create(&b, NULL, cook, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
