/* A publication before initialisation
 * The starter publishes the settings, properly locked, and only then fills in the port.
 * A server that looks in between finds settings that are there but not finished.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct settings {
    int port;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings *current;

static void *starter(void *unused) {
    struct settings *made = calloc(1, sizeof *made);
    pthread_mutex_lock(&lock);
    current = made;
    pthread_mutex_unlock(&lock);
    made->port = 8080; /* one line too late */
    return unused;
}

static void *server(void *unused) {
    pthread_mutex_lock(&lock);
    struct settings *found = current;
    pthread_mutex_unlock(&lock);
    if (found != NULL) {
        int port = found->port;
        printf("listening on port %d\n", port);
        assert(port == 8080);
    }
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, starter, NULL);
    pthread_create(&b, NULL, server, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    free(current);
    return 0;
}
