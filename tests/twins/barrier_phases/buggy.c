// Two-phase computation: chunks of a phase are handed out on demand, phases are
// separated by a barrier.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define WORKERS 2
#define PHASES 2
#define CHUNKS 2

static pthread_barrier_t phase_end;
static atomic_int next_chunk[PHASES];
static int result[PHASES][CHUNKS];

static int take_chunk(int phase)
{
    int chunk = atomic_fetch_add(&next_chunk[phase], 1);

    return chunk < CHUNKS ? chunk : -1;
}

// Reads a chunk from slow storage.
static int load_chunk(int phase, int chunk)
{
    struct timespec delay = {.tv_nsec = 2000000};

    nanosleep(&delay, NULL);
    return 10 * phase + chunk;
}

static void *work(void *argument)
{
    int *chunks = argument;

    for (int phase = 0; phase < PHASES; phase++) {
        int chunk, done = 0;

        while ((chunk = take_chunk(phase)) >= 0) {
            int previous = phase > 0 ? result[phase - 1][chunk] : 0;
            result[phase][chunk] = previous + load_chunk(phase, chunk);
            done++;
        }
        *chunks += done;
        // Only those with results have something to publish.
        if (done > 0)
            pthread_barrier_wait(&phase_end); // BUG
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    int chunks[WORKERS] = {0}, sum = 0;

    if (pthread_barrier_init(&phase_end, NULL, WORKERS) != 0)
        return 2;
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, &chunks[i]) != 0)
            return 2;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL); // BUG
        sum += chunks[i];
    }
    pthread_barrier_destroy(&phase_end);
    printf("%d chunks, last result %d\n", sum, result[PHASES - 1][CHUNKS - 1]);
    return sum == PHASES * CHUNKS ? 0 : 1;
}
