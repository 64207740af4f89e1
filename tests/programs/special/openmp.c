// A team of two threads fills an array and sums it up.
// Portent says that it does not understand what orders the two.
// portent: build -fopenmp
// portent: stdout 4950
#include <stdio.h>

static int squares[100], sum;

int main(void)
{
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 100; i++)
        squares[i] = i;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += squares[i];
    printf("%d\n", sum);
    return 0;
}
