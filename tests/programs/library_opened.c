// The same library, opened while threads run, closed and opened again.
// Prints the tally of the second time: its globals are new.
// portent: library tally opened
// portent: threads 3
// portent: variable tally_total
// portent: stdout 40 calls, total 780
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int (*add)(int);

static void *adds(void *start)
{
    for (int i = 0; i < 20; i++)
        add(*(int *)start + i);
    return NULL;
}

int main(int argc, char **argv)
{
    assert(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW);
    assert(library);
    add = (int (*)(int))dlsym(library, "tally_add");
    assert(add(5) == 5);
    assert(dlclose(library) == 0);
    library = dlopen(argv[1], RTLD_NOW);
    add = (int (*)(int))dlsym(library, "tally_add");
    pthread_t a, b;
    int zero = 0, twenty = 20;
    assert(pthread_create(&a, NULL, adds, &zero) == 0);
    assert(pthread_create(&b, NULL, adds, &twenty) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    int (*count)(void) = (int (*)(void))dlsym(library, "tally_count");
    printf("%d calls, total %d\n", count(), *(int *)dlsym(library, "tally_total"));
    return 0;
}
