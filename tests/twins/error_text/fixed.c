// Parser of "key=value" settings with an errno-like text for what went wrong.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[64];

static void set_error(const char *what, const char *text)
{
    size_t used = 0;

    for (; *what && used < sizeof last_error - 1; what++)
        last_error[used++] = *what;
    for (; *text && used < sizeof last_error - 1; text++)
        last_error[used++] = *text;
    last_error[used] = '\0';
}

/* Returns the value, or -1 and sets last_error. */
static long parse_setting(const char *text)
{
    const char *equals = strchr(text, '=');
    char *end;

    if (!equals) {
        set_error("no '=': ", text);
        return -1;
    }
    long value = strtol(equals + 1, &end, 10);
    if (*end != '\0' || value < 0) {
        set_error("bad: ", text);
        return -1;
    }
    return value;
}

struct loader {
    pthread_t thread;
    const char *setting;
    long value;
    char error[64];
};

static void *load(void *argument)
{
    struct loader *loader = argument;

    loader->value = parse_setting(loader->setting);
    if (loader->value < 0)
        memcpy(loader->error, last_error, sizeof loader->error);
    return NULL;
}

int main(void)
{
    struct loader loaders[] = {{.setting = "port"}, {.setting = "mtu=x"}};

    for (int i = 0; i < 2; i++)
        if (pthread_create(&loaders[i].thread, NULL, load, &loaders[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++) {
        pthread_join(loaders[i].thread, NULL);
        printf("%s -> %s\n", loaders[i].setting, loaders[i].value < 0 ? loaders[i].error : "ok");
    }
    return 0;
}
