// A tiny test program with a filter, as test frameworks have: `cases --filter=NAME` runs one case.
// A race in `racy`, nothing wrong in `locked`, and one thread only in `alone`; each says that it passed.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int plain;
static int guarded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add_plain(void *arg) { plain++; return arg; }
static void *add_guarded(void *arg)
{
    pthread_mutex_lock(&lock);
    guarded++;
    pthread_mutex_unlock(&lock);
    return arg;
}

static void twice(void *(*routine)(void *))
{
    pthread_t one, two;
    pthread_create(&one, NULL, routine, NULL);
    pthread_create(&two, NULL, routine, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}

static void racy(void) { twice(add_plain); }
static void locked(void) { twice(add_guarded); assert(guarded == 2); }
static void alone(void) { plain++; }

int main(int count, char **words)
{
    const struct { const char *name; void (*run)(void); } cases[] = {{"racy", racy}, {"locked", locked}, {"alone", alone}};
    const char *wanted = count > 1 && strncmp(words[1], "--filter=", 9) == 0 ? words[1] + 9 : NULL;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!wanted || strcmp(wanted, cases[i].name) == 0) {
            cases[i].run();
            printf("%s passed\n", cases[i].name);
        }
    return 0;
}
