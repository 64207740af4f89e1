/* An `if` where a `while` belongs
 * A worker that is woken takes a job without looking again. But a new job wakes all workers: one of
 * them is faster, and there is nothing left for the other.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int jobs;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    if (jobs == 0) /* once is not enough */
        pthread_cond_wait(&filled, &lock);
    if (jobs == 0)
        abort();
    jobs--;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *clerk(void *unused) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        jobs++;
        pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t a, b, c;
    pthread_create(&a, NULL, worker, NULL);
    pthread_create(&b, NULL, worker, NULL);
    pthread_create(&c, NULL, clerk, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    printf("%d jobs left\n", jobs);
    return 0;
}
