/* Clean twin of the use after free
 * Each of the two owns the connection; it is freed by whoever lets go of it last, and nobody uses
 * it after that.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct connection {
    pthread_mutex_t lock;
    int owners, sent;
};

static void let_go(struct connection *one) {
    pthread_mutex_lock(&one->lock);
    int left = --one->owners;
    pthread_mutex_unlock(&one->lock);
    if (left == 0) {
        pthread_mutex_destroy(&one->lock);
        free(one);
    }
}

static void *sender(void *mine) {
    struct connection *one = mine;
    one->sent = 12;
    let_go(one);
    return NULL;
}

static void *closer(void *mine) {
    let_go(mine);
    return NULL;
}

int main(void) {
    pthread_t a, b;
    struct connection *one = calloc(1, sizeof *one);
    pthread_mutex_init(&one->lock, NULL);
    one->owners = 2;
    pthread_create(&a, NULL, sender, one);
    pthread_create(&b, NULL, closer, one);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("sent\n");
    return 0;
}
