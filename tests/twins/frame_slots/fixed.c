// Decoder output: a fixed table of frame slots, each shown by a display and
// written by a recorder. The pixels go when both are done.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 2
#define PIXELS 8

struct slot {
    pthread_mutex_t lock;
    int users;
    unsigned char *pixels;
};

static struct slot slots[SLOTS];

static int slot_drop_user(struct slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    int left = --slot->users;
    pthread_mutex_unlock(&slot->lock);
    return left;
}

static void slot_release(struct slot *slot)
{
    if (slot_drop_user(slot) == 0)
        free(slot->pixels);
}

static void *display(void *argument)
{
    unsigned *brightness = argument;

    for (int s = 0; s < SLOTS; s++) {
        for (int i = 0; i < PIXELS; i++)
            *brightness += slots[s].pixels[i];
        slot_release(&slots[s]);
    }
    return NULL;
}

static void *recorder(void *argument)
{
    unsigned char *file = argument;

    for (int s = 0; s < SLOTS; s++) {
        memcpy(file + s * PIXELS, slots[s].pixels, PIXELS);
        slot_release(&slots[s]);
    }
    return NULL;
}

int main(void)
{
    unsigned brightness = 0;
    unsigned char file[SLOTS * PIXELS];
    pthread_t threads[2];

    for (int s = 0; s < SLOTS; s++) {
        pthread_mutex_init(&slots[s].lock, NULL);
        slots[s].users = 2;
        slots[s].pixels = malloc(PIXELS);
        if (!slots[s].pixels)
            return 2;
        memset(slots[s].pixels, 10 + s, PIXELS);
    }
    if (pthread_create(&threads[0], NULL, display, &brightness) != 0 ||
        pthread_create(&threads[1], NULL, recorder, file) != 0)
        return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("brightness %u, last pixel %d\n", brightness, file[sizeof file - 1]);
    return 0;
}
