// Bench: four threads multiply two square matrices, each its own rows; nearly everything is plain reads and writes.
// Prints a checksum. The argument is the size.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static int size;
static double *a, *b, *c;

static void *rows(void *argument)
{
    for (int i = (int)(intptr_t)argument; i < size; i += THREADS)
        for (int j = 0; j < size; j++) {
            double sum = 0;
            for (int k = 0; k < size; k++)
                sum += a[i * size + k] * b[k * size + j];
            c[i * size + j] = sum;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    size = argc > 1 ? atoi(argv[1]) : 240;
    size_t cells = (size_t)size * (size_t)size;
    a = malloc(cells * sizeof *a);
    b = malloc(cells * sizeof *b);
    c = malloc(cells * sizeof *c);
    for (size_t i = 0; i < cells; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
    }
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, rows, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += c[i];
    printf("checksum %.0f\n", sum);
    free(a), free(b), free(c);
    return 0;
}
