// A bounded buffer of one: two put, two get. Buggy: one condition for both, and only one waiter is woken.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int full, sum;

static void tell(void) {
#ifdef FIXED
    pthread_cond_broadcast(&changed);
#else
    pthread_cond_signal(&changed);
#endif
}

static void *put(void *arg) {
    pthread_mutex_lock(&lock);
    while (full) pthread_cond_wait(&changed, &lock);
    full = (int)(long)arg;
    tell();
    pthread_mutex_unlock(&lock);
    return 0;
}

static void *get(void *arg) {
    pthread_mutex_lock(&lock);
    while (!full) pthread_cond_wait(&changed, &lock);
    sum += full;
    full = 0;
    tell();
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t threads[4];
    pthread_create(&threads[0], 0, put, (void *)1);
    pthread_create(&threads[1], 0, put, (void *)2);
    pthread_create(&threads[2], 0, get, 0);
    pthread_create(&threads[3], 0, get, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    assert(sum == 3);
    return 0;
}
