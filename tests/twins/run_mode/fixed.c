// A server whose mode is kept in its environment, for the programs that it starts.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mode_lock = PTHREAD_MUTEX_INITIALIZER;
static int served;

static void set_mode(const char *mode)
{
    pthread_mutex_lock(&mode_lock);
    setenv("SERVER_MODE", mode, 1);
    pthread_mutex_unlock(&mode_lock);
}

static void get_mode(char *mode, size_t size)
{
    pthread_mutex_lock(&mode_lock);
    const char *value = getenv("SERVER_MODE");
    snprintf(mode, size, "%s", value ? value : "normal");
    pthread_mutex_unlock(&mode_lock);
}

static void serve(void)
{
    char mode[16];
    get_mode(mode, sizeof mode);
    bool known = strcmp(mode, "normal") == 0 || strcmp(mode, "maintenance") == 0;
    pthread_mutex_lock(&mode_lock);
    served += known;
    pthread_mutex_unlock(&mode_lock);
}

static void *server(void *unused)
{
    for (int request = 0; request < 2; request++)
        serve();
    return unused;
}

static void *administrator(void *unused)
{
    set_mode("maintenance");
    set_mode("normal");
    return unused;
}

int main(void)
{
    pthread_t serving, administrating;

    set_mode("normal");
    if (pthread_create(&serving, NULL, server, NULL) != 0)
        return EXIT_FAILURE;
    if (pthread_create(&administrating, NULL, administrator, NULL) != 0)
        return EXIT_FAILURE;
    pthread_join(serving, NULL);
    pthread_join(administrating, NULL);

    printf("%d requests served\n", served);
    return served == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
