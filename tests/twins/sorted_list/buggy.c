// A sorted set of port numbers: a linked list with one lock per node.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
    pthread_mutex_t lock;
    int port;
    struct node *next;
};

static struct node ports = {.lock = PTHREAD_MUTEX_INITIALIZER, .port = -1};

static struct node *node_new(int port, struct node *next)
{
    struct node *node = malloc(sizeof *node);

    if (!node)
        abort();
    pthread_mutex_init(&node->lock, NULL);
    node->port = port;
    node->next = next;
    return node;
}

/* Returns the last node before port, locked. */
static struct node *find_before(int port)
{
    struct node *node = &ports;

    pthread_mutex_lock(&node->lock);
    while (node->next) {
        struct node *next = node->next;
        pthread_mutex_unlock(&node->lock);
        pthread_mutex_lock(&next->lock); // BUG
        if (next->port >= port) { // BUG
            pthread_mutex_unlock(&next->lock);
            pthread_mutex_lock(&node->lock); // BUG
            return node;
        }
        node = next;
    }
    return node;
}

static int contains(int port)
{
    struct node *before = find_before(port);
    int found = before->next && before->next->port == port;

    pthread_mutex_unlock(&before->lock);
    return found;
}

static void remove_port(int port)
{
    struct node *before = find_before(port);
    struct node *gone = before->next;

    if (gone && gone->port == port) {
        // Whoever still holds it got there before us.
        pthread_mutex_lock(&gone->lock);
        before->next = gone->next;
        pthread_mutex_unlock(&gone->lock);
        pthread_mutex_destroy(&gone->lock); // BUG
        free(gone); // BUG
    }
    pthread_mutex_unlock(&before->lock);
}

static void *closer(void *unused)
{
    remove_port(80);
    return unused;
}

static void *prober(void *argument)
{
    *(int *)argument = contains(443);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int open = 0;

    ports.next = node_new(22, node_new(80, node_new(443, NULL)));
    if (pthread_create(&threads[0], NULL, closer, NULL) != 0 ||
        pthread_create(&threads[1], NULL, prober, &open) != 0)
        return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("https is %s\n", open ? "open" : "closed");
    return open ? 0 : 1;
}
