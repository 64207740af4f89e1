// Two stages: half of N threads set one value under one lock and a second under another; the other half compare them.
// Buggy: between the stages nothing is held.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

static void *set(void *arg) {
    pthread_mutex_lock(&one);
    int own = first = 1;
#ifndef FIXED
    pthread_mutex_unlock(&one);
#endif
    pthread_mutex_lock(&two);
    second = own + 1;
    pthread_mutex_unlock(&two);
#ifdef FIXED
    pthread_mutex_unlock(&one);
#endif
    return arg;
}

static void *compare(void *arg) {
    int was, is;
    pthread_mutex_lock(&one);
    was = first;
#ifndef FIXED
    pthread_mutex_unlock(&one);
    if (was == 0) return arg;
#endif
    pthread_mutex_lock(&two);
    is = second;
    pthread_mutex_unlock(&two);
#ifdef FIXED
    pthread_mutex_unlock(&one);
    if (was == 0) return arg;
#endif
    assert(is == was + 1);
    return arg;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t all[128];
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&two);
    first = second = 0;
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, i < threads / 2 ? set : compare, 0);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    return 0;
}
