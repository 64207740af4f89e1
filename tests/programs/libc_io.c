// Buffered files: two threads write lines to the same FILE, one reads them back, and names are looked up and parsed.
// Prints how many lines came back whole.
// portent: threads 3
// portent: stdout 40 whole lines
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *file;

static void *write_lines(void *name)
{
    for (int i = 0; i < 20; i++)
        assert(fprintf(file, "%s wrote line %d\n", (char *)name, i) > 0);
    return NULL;
}

int main(void)
{
    file = tmpfile();
    assert(file);
    pthread_t a, b;
    assert(pthread_create(&a, NULL, write_lines, "a") == 0);
    assert(pthread_create(&b, NULL, write_lines, "b") == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    rewind(file);
    char *line = NULL;
    size_t room = 0;
    int whole = 0;
    while (getline(&line, &room, file) > 0) {
        char who;
        int number;
        whole += sscanf(line, "%c wrote line %d\n", &who, &number) == 2;
    }
    free(line);
    fclose(file);
    printf("%d whole lines\n", whole);
    return 0;
}
