// A ring of slots between two producers and two consumers, with counting semaphores and a lock for each end.
// Prints the sum of what was handed over.
// portent: threads 5
// portent: stdout 20
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { SLOTS = 2, EACH = 4 };
static int slots[SLOTS], head, tail, sum;
static sem_t empty, full;
static pthread_mutex_t put_lock = PTHREAD_MUTEX_INITIALIZER, get_lock = PTHREAD_MUTEX_INITIALIZER;

static void *produce(void *arg)
{
    for (int i = 1; i <= EACH; i++) {
        sem_wait(&empty);
        pthread_mutex_lock(&put_lock);
        slots[head] = i;
        head = (head + 1) % SLOTS;
        pthread_mutex_unlock(&put_lock);
        sem_post(&full);
    }
    return arg;
}
static void *consume(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        sem_wait(&full);
        pthread_mutex_lock(&get_lock);
        sum += slots[tail];
        tail = (tail + 1) % SLOTS;
        pthread_mutex_unlock(&get_lock);
        sem_post(&empty);
    }
    return arg;
}
int main(void)
{
    pthread_t t[4];
    sem_init(&empty, 0, SLOTS);
    sem_init(&full, 0, 0);
    pthread_create(&t[0], NULL, produce, NULL);
    pthread_create(&t[1], NULL, consume, NULL);
    pthread_create(&t[2], NULL, produce, NULL);
    pthread_create(&t[3], NULL, consume, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    printf("%d\n", sum);
    return sum == 20 ? 0 : 1;
}
