/* A result that depends on who comes last
 * Both bids are written under the lock: no race, no deadlock, nothing torn. But the last bid wins,
 * not the highest one, and nothing decides which of them is last.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int best;

static void bid(int price) {
    pthread_mutex_lock(&lock);
    best = price; /* without asking whether it is better */
    pthread_mutex_unlock(&lock);
}

static void *ann(void *unused) {
    bid(40);
    return unused;
}

static void *bob(void *unused) {
    bid(50);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, ann, NULL);
    pthread_create(&b, NULL, bob, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    int price = best;
    printf("sold for %d\n", price);
    return 0;
}
