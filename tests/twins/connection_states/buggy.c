// State machine of a connection: a handshake thread and a user who may hang up.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum state { IDLE, CONNECTING, ESTABLISHED, CLOSED };

struct connection {
    pthread_mutex_t lock;
    enum state state;
    int socket; // -1 when closed
    unsigned sent;
};

static struct connection phone = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

static int begin_connect(struct connection *c)
{
    int connecting = 0;

    pthread_mutex_lock(&c->lock);
    if (c->state == IDLE) {
        c->state = CONNECTING;
        c->socket = 7;
        connecting = 1;
    }
    pthread_mutex_unlock(&c->lock);
    return connecting;
}

static int finish_connect(struct connection *c)
{
    pthread_mutex_lock(&c->lock);
    c->state = ESTABLISHED; // BUG
    pthread_mutex_unlock(&c->lock);
    return 1;
}

static void send_hello(struct connection *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->state == ESTABLISHED) {
        assert(c->socket >= 0); // BUG
        c->sent++;
    }
    pthread_mutex_unlock(&c->lock);
}

static void hang_up(struct connection *c)
{
    pthread_mutex_lock(&c->lock);
    c->state = CLOSED;
    c->socket = -1;
    pthread_mutex_unlock(&c->lock);
}

static void *dial(void *unused)
{
    if (begin_connect(&phone) && finish_connect(&phone))
        send_hello(&phone);
    return unused;
}

static void *user(void *unused)
{
    hang_up(&phone);
    return unused;
}

int main(void)
{
    pthread_t dialler, person;

    if (pthread_create(&dialler, NULL, dial, NULL) != 0 ||
        pthread_create(&person, NULL, user, NULL) != 0)
        return 2;
    pthread_join(dialler, NULL);
    pthread_join(person, NULL);
    puts("call ended");
    return 0;
}
