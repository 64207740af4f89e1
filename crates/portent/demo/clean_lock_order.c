/* Clean twin of the three-way deadlock
 * The same philosophers and forks, but everybody takes red before green before blue.
 * Whoever holds the last fork of that order can eat, so somebody always can.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t red = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t green = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t blue = PTHREAD_MUTEX_INITIALIZER;

static void dine(const char *name, pthread_mutex_t *left, pthread_mutex_t *right) {
    pthread_mutex_lock(left);
    pthread_mutex_lock(right);
    printf("%s dines\n", name);
    pthread_mutex_unlock(right);
    pthread_mutex_unlock(left);
}

static void *plato(void *unused) {
    dine("Plato", &red, &green);
    return unused;
}

static void *kant(void *unused) {
    dine("Kant", &green, &blue);
    return unused;
}

static void *hume(void *unused) {
    dine("Hume", &red, &blue);
    return unused;
}

int main(void) {
    pthread_t a, b, c;
    pthread_create(&a, NULL, plato, NULL);
    pthread_create(&b, NULL, kant, NULL);
    pthread_create(&c, NULL, hume, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    return 0;
}
