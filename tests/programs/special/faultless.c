// Everything that looks like a fault and is none: memory that the C library allocates, objects that end and begin anew.
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static void frees_what_the_library_made(void)
{
    char *text, *line = NULL, *stream_text;
    size_t room = 0, size;
    struct dirent **entries;
    free(strdup("a"));
    free(strndup("abc", 2));
    free(wcsdup(L"wide"));
    assert(asprintf(&text, "%d %s %f", 7, "seven", 7.0) > 0 && strncmp(text, "7 seven 7.0", 11) == 0);
    free(text);
    assert(asprintf(&text, "%d%d%d%d%d%d%d%d %.1f", 1, 2, 3, 4, 5, 6, 7, 8, 9.5) == 12 && strcmp(text, "12345678 9.5") == 0);
    free(text);
    free(realpath("/", NULL));
    free(getcwd(NULL, 0));
    FILE *file = fopen("/proc/self/maps", "r");
    while (getline(&line, &room, file) > 0)
        assert(line[0] != 0);
    free(line);
    fclose(file);
    int found = scandir("/proc/self", &entries, NULL, alphasort);
    for (int i = 0; i < found; i++)
        free(entries[i]);
    free(entries);
    FILE *stream = open_memstream(&stream_text, &size);
    for (int i = 0; i < 1000; i++)
        fprintf(stream, "line %d\n", i);
    fclose(stream);
    assert(size > 1000 && stream_text[size - 1] == '\n');
    free(stream_text);
}

static void *works(void *argument)
{
    pthread_barrier_wait(argument);
    return NULL;
}

static void objects_begin_anew(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
        pthread_rwlock_t shared;
        pthread_spinlock_t spin;
        pthread_barrier_t barrier;
        pthread_t thread;
        sem_t semaphore;
        sem_init(&semaphore, 0, 1);
        pthread_rwlock_init(&shared, NULL);
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_spin_init(&spin, 0);
        assert(pthread_create(&thread, NULL, works, &barrier) == 0);
        pthread_barrier_wait(&barrier);
        sem_wait(&semaphore);
        sem_destroy(&semaphore);
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&lock);
        pthread_rwlock_rdlock(&shared);
        pthread_rwlock_unlock(&shared);
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
        pthread_cond_destroy(&condition);
        pthread_mutex_destroy(&lock);
        pthread_mutex_init(&lock, NULL);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_mutex_destroy(&lock);
        pthread_rwlock_destroy(&shared);
        pthread_spin_destroy(&spin);
        pthread_barrier_destroy(&barrier);
        pthread_join(thread, NULL);
    }
}

struct session {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int users, finished;
};

/// The last one out frees what it waited on.
static void *leaves(void *argument)
{
    struct session *session = argument;
    pthread_mutex_lock(&session->lock);
    while (!session->finished)
        pthread_cond_wait(&session->done, &session->lock);
    int last = --session->users == 0;
    pthread_mutex_unlock(&session->lock);
    if (last) {
        pthread_cond_destroy(&session->done);
        pthread_mutex_destroy(&session->lock);
        free(session);
    }
    return NULL;
}

static void the_last_one_frees(void)
{
    pthread_t threads[3];
    struct session *session = calloc(1, sizeof *session);
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->done, NULL);
    session->users = 4;
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, leaves, session) == 0);
    pthread_mutex_lock(&session->lock);
    session->finished = 1;
    pthread_cond_broadcast(&session->done);
    int last = --session->users == 0;
    pthread_mutex_unlock(&session->lock);
    if (last)
        free(session);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/// More than is kept, so that addresses come again; and very large blocks.
static void memory_comes_again(void)
{
    uintptr_t first = 0;
    int again = 0;
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(1 << 20);
        block[0] = block[(1 << 20) - 1] = 1;
        again |= (uintptr_t)block == first;
        // The first ones are not where malloc puts such blocks later.
        if (i == 400)
            first = (uintptr_t)block;
        free(block);
    }
    assert(again);
    for (int i = 0; i < 3; i++) {
        char *block = malloc(100u << 20);
        block[50 << 20] = 1;
        free(block);
    }
    char *grown = NULL;
    for (size_t size = 1; size < 5000; size = size * 2 + 1) {
        grown = realloc(grown, size);
        grown[size - 1] = 1;
    }
    free(grown);
    void *aligned;
    assert(posix_memalign(&aligned, 256, 100) == 0 && (uintptr_t)aligned % 256 == 0);
    memset(aligned, 1, 100);
    free(aligned);
    free(aligned_alloc(64, 128));
}

static void *closes(void *descriptor)
{
    close(*(int *)descriptor);
    return NULL;
}

static void descriptors(void)
{
    pthread_t thread;
    int opened = open("/dev/null", O_WRONLY);
    assert(write(opened, "x", 1) == 1);
    assert(pthread_create(&thread, NULL, closes, &opened) == 0);
    pthread_join(thread, NULL);
    int again = open("/dev/null", O_WRONLY);
    assert(again == opened && write(again, "x", 1) == 1);
    close(again);
    close(again);
}

static void at_exit(void)
{
    free(malloc(10));
}

int main(void)
{
    atexit(at_exit);
    frees_what_the_library_made();
    objects_begin_anew();
    the_last_one_frees();
    memory_comes_again();
    descriptors();
    puts("fine");
    return 0;
}
