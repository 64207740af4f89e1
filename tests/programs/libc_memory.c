// Library functions that read and write the program's memory, on buffers that two threads share under a lock.
// Prints what is in the buffers at the end; the library's accesses to them are in the trace.
// portent: threads 3
// portent: variable line*
// portent: variable moved*
// portent: stdout item 19 of 20, moved 1234567890, sorted 1 2 3 4 5 6 7 8
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char line[64], copy[64], moved[32];
static int numbers[8], sorted[8];
static int items;

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        snprintf(line, sizeof line, "item %d of %d", items++, 20);
        strcpy(copy, line);
        assert(strcmp(copy, line) == 0 && strlen(copy) == strlen(line) && strncmp(copy, line, 4) == 0);
        assert(memcmp(copy, line, strlen(line) + 1) == 0 && strcasecmp(copy, "ITEM") > 0);
        assert(strchr(line, 'o') && strrchr(line, 'o') && strstr(line, " of ") && memchr(line, 'f', sizeof line));
        memset(moved, '.', sizeof moved - 1);
        memcpy(moved, "12345", 5);
        memmove(moved + 5, "67890 ", 5);
        memmove(moved + 1, moved, 10);
        memmove(moved, moved + 1, 10);
        moved[10] = 0;
        strcat(copy, "!");
        strncat(copy, "??", 1);
        assert(strcspn(copy, "!") == strlen(line) && strnlen(copy, 3) == 3);
        int a, b;
        assert(sscanf(line, "item %d of %d", &a, &b) == 2 && a == items - 1 && b == 20);
        for (int k = 0; k < 8; k++)
            numbers[k] = (k * 5 + i) % 8 + 1;
        memcpy(sorted, numbers, sizeof sorted);
        qsort(sorted, 8, sizeof sorted[0], by_value);
        int three = 3;
        assert(bsearch(&three, sorted, 8, sizeof sorted[0], by_value) == &sorted[2]);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, work, NULL) == 0);
    assert(pthread_create(&b, NULL, work, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%s, moved %s, sorted", line, moved);
    for (int i = 0; i < 8; i++)
        printf(" %d", sorted[i]);
    puts("");
    return 0;
}
