// A test as people write them without a framework: it says what went wrong on standard output and exits with 1.
// Where the one who looks is first, it fails.
// portent: stdout PASS
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int ready, seen;

static void *prepare(void *unused) {
    ready = 1;
    return unused;
}

static void *look(void *unused) {
    seen = ready;
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, prepare, NULL);
    pthread_create(&b, NULL, look, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    if (!seen) {
        printf("FAIL: looked before it was ready\n");
        return 1;
    }
    printf("PASS\n");
}
