// Start-up by flags: two workers wait until main has set up the table, main until both are ready.
// Prints the sum of what both find in the table.
// portent: threads 3
// portent: stdout 3
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static int table[4];
static atomic_int ready, prepared;
static void *work(void *arg)
{
    atomic_fetch_add(&ready, 1);
    while (!atomic_load_explicit(&prepared, memory_order_acquire))
        ;
    return (void *)(long)table[(long)arg];
}
int main(void)
{
    pthread_t t[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    while (atomic_load(&ready) < 2)
        ;
    for (int i = 0; i < 4; i++)
        table[i] = i + 1;
    atomic_store_explicit(&prepared, 1, memory_order_release);
    void *a, *b;
    pthread_join(t[0], &a);
    pthread_join(t[1], &b);
    printf("%ld\n", (long)a + (long)b);
    return 0;
}
