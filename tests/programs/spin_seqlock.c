// A sequence lock: one writer moves a point, two readers take consistent copies of it.
// Prints where the point is in the end; every copy is consistent, and none is older than the one before.
// portent: threads 4
// portent: stdout 40
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_uint sequence;
static atomic_int x, y;

static void move_to(int to)
{
    unsigned s = atomic_load_explicit(&sequence, memory_order_relaxed);
    atomic_store(&sequence, s + 1);
    atomic_store(&x, to);
    atomic_store(&y, -to);
    atomic_store(&sequence, s + 2);
}
static int position(void)
{
    for (;;) {
        unsigned before = atomic_load(&sequence);
        if (before & 1)
            continue;
        int a = atomic_load(&x), b = atomic_load(&y);
        if (atomic_load(&sequence) == before) {
            assert(a == -b);
            return a;
        }
    }
}
static void *writer(void *arg)
{
    for (int i = 1; i <= 4; i++)
        move_to(i * 10);
    return arg;
}
static void *reader(void *arg)
{
    int last = 0;
    for (int i = 0; i < 3; i++) {
        int now = position();
        assert(now >= last);
        last = now;
    }
    return arg;
}
int main(void)
{
    pthread_t w, r[2];
    pthread_create(&r[0], NULL, reader, NULL);
    pthread_create(&w, NULL, writer, NULL);
    pthread_create(&r[1], NULL, reader, NULL);
    pthread_join(w, NULL);
    pthread_join(r[0], NULL);
    pthread_join(r[1], NULL);
    printf("%d\n", position());
    return 0;
}
