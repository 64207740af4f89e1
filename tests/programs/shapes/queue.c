// A queue in an array: one puts two in, two take one out. Buggy: the check for something in it and the taking are two steps.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items[2], first, after, taken;

static int is_empty(void) {
    pthread_mutex_lock(&lock);
    int empty = first == after;
    pthread_mutex_unlock(&lock);
    return empty;
}

static void *put(void *arg) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        items[after++] = i + 1;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *take(void *arg) {
#ifndef FIXED
    if (is_empty()) return arg;
#endif
    pthread_mutex_lock(&lock);
#ifdef FIXED
    if (first == after) {
        pthread_mutex_unlock(&lock);
        return arg;
    }
#endif
    assert(first < after);
    taken += items[first++];
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t threads[3];
    pthread_mutex_lock(&lock);
    first = after = taken = 0;
    pthread_mutex_unlock(&lock);
    pthread_create(&threads[0], 0, put, 0);
    pthread_create(&threads[1], 0, take, 0);
    pthread_create(&threads[2], 0, take, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    assert(is_empty() || first < after);
    return 0;
}
