// Start-up of two services with C11 threads: the web server waits until the
// database connection is up.
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

struct completion {
    mtx_t lock;
    cnd_t changed;
    atomic_bool done;
};

static int completion_init(struct completion *completion)
{
    atomic_init(&completion->done, 0);
    return mtx_init(&completion->lock, mtx_plain) == thrd_success &&
           cnd_init(&completion->changed) == thrd_success;
}

static void completion_wait(struct completion *completion)
{
    mtx_lock(&completion->lock);
    while (!atomic_load(&completion->done))
        cnd_wait(&completion->changed, &completion->lock);
    mtx_unlock(&completion->lock);
}

static void completion_set(struct completion *completion)
{
    mtx_lock(&completion->lock);
    atomic_store(&completion->done, 1);
    cnd_broadcast(&completion->changed);
    mtx_unlock(&completion->lock);
}

static void completion_destroy(struct completion *completion)
{
    cnd_destroy(&completion->changed);
    mtx_destroy(&completion->lock);
}

struct services {
    struct completion database_up;
    int tables;
};

static int start_database(void *argument)
{
    struct services *services = argument;

    services->tables = 12;
    completion_set(&services->database_up);
    return 0;
}

static int start_web_server(void *argument)
{
    struct services *services = argument;

    completion_wait(&services->database_up);
    return services->tables;
}

int main(void)
{
    struct services services = {.tables = 0};
    thrd_t database, web;
    int tables = 0;

    if (!completion_init(&services.database_up))
        return 2;
    if (thrd_create(&database, start_database, &services) != thrd_success ||
        thrd_create(&web, start_web_server, &services) != thrd_success)
        return 2;
    thrd_join(database, NULL);
    thrd_join(web, &tables);
    completion_destroy(&services.database_up);
    printf("web server sees %d tables\n", tables);
    return 0;
}
