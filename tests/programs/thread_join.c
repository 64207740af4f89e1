// Threads get an argument, return a value, and are joined in another order than they were made in.
// Prints the sum of what they returned.
// portent: threads 5
// portent: ops fork 4
// portent: ops join 4
// portent: stdout sum 30
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void *square(void *argument)
{
    intptr_t n = (intptr_t)argument;
    return (void *)(n * n);
}

int main(void)
{
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, square, (void *)(i + 1)) == 0);
    intptr_t sum = 0;
    for (int i = 3; i >= 0; i--) {
        void *result;
        assert(pthread_join(threads[i], &result) == 0);
        sum += (intptr_t)result;
    }
    printf("sum %ld\n", (long)sum);
    return 0;
}
