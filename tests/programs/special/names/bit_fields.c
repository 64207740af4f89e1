// Flags of a device: bit-fields of a struct in an array, and a union.
// portent: object devices[2].ready|failed|speed
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct device {
    char name[16];
    unsigned ready : 1;
    unsigned failed : 1;
    unsigned speed : 6;
    union {
        int as_int;
        float as_float;
    } last;
};

static struct device devices[4];

static void *interrupt(void *arg)
{
    struct device *device = arg;
    device->ready = 1;
    device->last.as_int = 5;
    return NULL;
}

static void *timer(void *arg)
{
    struct device *device = arg;
    device->failed = 1;
    device->last.as_float = 1.5f;
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    strcpy(devices[2].name, "eth0");
    pthread_create(&one, NULL, interrupt, &devices[2]);
    pthread_create(&two, NULL, timer, &devices[2]);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
