/* Clean twin of the last bid and of the split update
 * Each bidder writes to a place of his own, and the highest is chosen when all have ended.
 * Nobody can overwrite anybody, and the result is the same in every order.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int bids[2];

static void *ann(void *unused) {
    bids[0] = 40;
    return unused;
}

static void *bob(void *unused) {
    bids[1] = 50;
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, ann, NULL);
    pthread_create(&b, NULL, bob, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    int best = bids[0] > bids[1] ? bids[0] : bids[1];
    printf("sold for %d\n", best);
    assert(best == 50);
    return 0;
}
