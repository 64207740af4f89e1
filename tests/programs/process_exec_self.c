// The program replaces itself by exec, as launchers do, and only then makes threads; the process stays the same.
// Prints what the second image did. The trace holds whatever could be recorded of both, and is well formed.
// portent: stdout second image counted 20
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;

static void *counts(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        execv("/proc/self/exe", (char *[]){argv[0], "again", NULL});
        return 99;
    }
    pthread_t a, b;
    assert(pthread_create(&a, NULL, counts, NULL) == 0);
    assert(pthread_create(&b, NULL, counts, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("second image counted %d\n", counted);
    return 0;
}
