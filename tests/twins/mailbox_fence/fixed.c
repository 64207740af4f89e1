/* A mailbox between the decoder and the player: a frame is filled in, then its slot is marked full, with fences in between as the
 * port of an old driver has them. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES = 2 };

struct frame {
    int number;
    char samples[8];
};

static struct frame slots[FRAMES];
static atomic_int full[FRAMES];

static void fill(struct frame *frame, int number)
{
    frame->number = number;
    memset(frame->samples, 'a' + number, sizeof frame->samples - 1);
    frame->samples[sizeof frame->samples - 1] = 0;
}

static void *decoder(void *unused)
{
    for (int i = 0; i < FRAMES; i++) {
        fill(&slots[i], i);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&full[i], 1, memory_order_relaxed);
    }
    return unused;
}

static void *player(void *unused)
{
    for (int i = 0; i < FRAMES; i++) {
        while (!atomic_load_explicit(&full[i], memory_order_relaxed))
            sched_yield();
        atomic_thread_fence(memory_order_acquire);
        printf("frame %d: %s\n", slots[i].number, slots[i].samples);
    }
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, decoder, NULL);
    pthread_create(&b, NULL, player, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
