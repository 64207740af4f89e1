// A team of two threads: `openmp WHAT`. Regions, loops, barriers, critical sections, locks and `ordered` keep them apart; `openmp racy` has
// nothing that does.
// portent: build -fopenmp
#include <omp.h>
#include <stdio.h>
#include <string.h>

static int squares[100], sum, first, second;
static omp_lock_t lock;

// The end of a region comes before the next one.
static void regions(void)
{
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 100; i++)
        squares[i] = i;
#pragma omp parallel for num_threads(2) schedule(dynamic, 10) reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += squares[99 - i];
}

static void barriers(void)
{
#pragma omp parallel num_threads(2)
    {
        squares[omp_get_thread_num()] = 1;
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            sum = squares[0] + squares[1];
    }
}

static void locks(void)
{
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        first++;
#pragma omp critical(named)
        second++;
        omp_set_lock(&lock);
        sum += 1;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
}

static void racy(void)
{
#pragma omp parallel num_threads(2)
    sum++;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "regions";
    if (!strcmp(what, "regions"))
        regions();
    if (!strcmp(what, "barriers"))
        barriers();
    if (!strcmp(what, "locks"))
        locks();
    if (!strcmp(what, "racy"))
        racy();
    printf("%s\n", what);
    return 0;
}
