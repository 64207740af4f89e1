// A watchdog that polls until it is told to stop.
#include <stdatomic.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct watchdog {
    pthread_t thread;
    atomic_int running; // cleared by watchdog_stop()
    int polls;
};

static void pause_ms(long ms)
{
    struct timespec delay = {.tv_nsec = ms * 1000000};

    nanosleep(&delay, NULL);
}

// Looks at the state of the service; here it is always well.
static int service_alive(void)
{
    return 1;
}

static void *watch(void *argument)
{
    struct watchdog *dog = argument;

    while (atomic_load(&dog->running) && dog->polls < 50) {
        if (!service_alive())
            fprintf(stderr, "service is down\n");
        dog->polls++;
        pause_ms(2);
    }
    return NULL;
}

static int watchdog_start(struct watchdog *dog)
{
    atomic_init(&dog->running, 1);
    dog->polls = 0;
    return pthread_create(&dog->thread, NULL, watch, dog);
}

static int watchdog_stop(struct watchdog *dog)
{
    atomic_store(&dog->running, 0);
    pthread_join(dog->thread, NULL);
    return dog->polls;
}

int main(void)
{
    struct watchdog dog;

    if (watchdog_start(&dog) != 0)
        return 2;
    // The service does its work.
    pause_ms(3);
    int polls = watchdog_stop(&dog);
    printf("watchdog %s\n", polls <= 50 ? "stopped" : "ran away");
    return polls <= 50 ? 0 : 1;
}
