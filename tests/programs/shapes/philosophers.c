// Three dining philosophers. Buggy: each takes the left fork first. With GATE only two of them may sit down at a time; FIXED takes
// the lower fork first.
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int meals[3];
#ifdef GATE
static sem_t gate;
#endif

static void *dine(void *arg) {
    long me = (long)arg, left = me, right = (me + 1) % 3;
#ifdef FIXED
    if (left > right) {
        left = right;
        right = me;
    }
#endif
#ifdef GATE
    sem_wait(&gate);
#endif
    pthread_mutex_lock(&forks[left]);
    pthread_mutex_lock(&forks[right]);
    meals[me]++;
    pthread_mutex_unlock(&forks[right]);
    pthread_mutex_unlock(&forks[left]);
#ifdef GATE
    sem_post(&gate);
#endif
    return 0;
}

int main(void) {
    pthread_t all[3];
#ifdef GATE
    sem_init(&gate, 0, 2);
#endif
    for (long i = 0; i < 3; i++) pthread_create(&all[i], 0, dine, (void *)i);
    for (long i = 0; i < 3; i++) pthread_join(all[i], 0);
    return 0;
}
