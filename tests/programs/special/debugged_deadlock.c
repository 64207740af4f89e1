// Two locks in two orders.
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *forth(void *unused)
{
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b); // waits for b
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *back(void *unused)
{
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a); // waits for a
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, forth, NULL);
    pthread_create(&two, NULL, back, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
