// Two decoder units shared by three threads, handed out by a semaphore.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define UNITS 2
#define JOBS 3

static sem_t free_units;
static pthread_mutex_t units_lock = PTHREAD_MUTEX_INITIALIZER;
static int in_use[UNITS];

static int unit_acquire(void)
{
    int unit = -1;

    sem_wait(&free_units);
    pthread_mutex_lock(&units_lock);
    for (int i = 0; i < UNITS; i++)
        if (!in_use[i]) {
            in_use[i] = 1;
            unit = i;
            break;
        }
    pthread_mutex_unlock(&units_lock);
    assert(unit >= 0 && "the semaphore promised a unit"); // BUG
    return unit;
}

static void unit_release(int unit)
{
    pthread_mutex_lock(&units_lock);
    in_use[unit] = 0;
    pthread_mutex_unlock(&units_lock);
    sem_post(&free_units);
}

static void *decode(void *argument)
{
    const int *frame = argument;
    int unit = unit_acquire();
    char line[48];

    snprintf(line, sizeof line, "frame %d decoded", *frame);
    puts(line);
    unit_release(unit);
    return NULL;
}

int main(void)
{
    pthread_t threads[JOBS];
    int frames[JOBS];

    // Units, and one for the thread that is just releasing its own.
    if (sem_init(&free_units, 0, UNITS + 1) != 0)
        return 2;
    for (int i = 0; i < JOBS; i++) {
        frames[i] = i;
        if (pthread_create(&threads[i], NULL, decode, &frames[i]) != 0)
            return 2;
    }
    for (int i = 0; i < JOBS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&free_units);
    return 0;
}
