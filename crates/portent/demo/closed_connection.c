/* A use after free
 * The sender takes the connection under the lock, lets go of the lock, and sends on it. Whoever
 * closes the connection in between frees what the sender still writes to.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct connection {
    int sent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *open_one;

static void *sender(void *unused) {
    pthread_mutex_lock(&lock);
    struct connection *found = open_one;
    pthread_mutex_unlock(&lock);
    if (found != NULL) {
        found->sent = 12; /* is it still there? */
        printf("sent\n");
    }
    return unused;
}

static void *closer(void *unused) {
    pthread_mutex_lock(&lock);
    struct connection *last = open_one;
    open_one = NULL;
    pthread_mutex_unlock(&lock);
    free(last);
    return unused;
}

int main(void) {
    pthread_t a, b;
    open_one = calloc(1, sizeof *open_one);
    pthread_create(&a, NULL, sender, NULL);
    pthread_create(&b, NULL, closer, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
