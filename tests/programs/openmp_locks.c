// OpenMP: locks, nested locks, tries, critical sections and a barrier.
// Three threads; each count is what all of them together come to, and all see it behind the barrier.
// portent: build -fopenmp
// portent: stdout 12 6 9 3
// portent: threads 3
// portent: ops acq 12+
#include <omp.h>
#include <stdio.h>

static int counted, nested, tried, after;

int main(void)
{
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);

#pragma omp parallel num_threads(3)
    {
#pragma omp critical
        counted += 4;

        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        nested += 2;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);

        for (int i = 0; i < 3; i++) {
            if (!omp_test_lock(&lock))
                omp_set_lock(&lock);
            tried++;
            omp_unset_lock(&lock);
        }
#pragma omp barrier
        // Whoever leaves the barrier sees what all others did before it.
        int seen = tried;
#pragma omp critical(last)
        after += seen == 9;
    }

    omp_destroy_nest_lock(&nest);
    omp_destroy_lock(&lock);
    printf("%d %d %d %d\n", counted, nested, tried, after);
    return 0;
}
