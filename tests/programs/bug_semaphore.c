// A thread that a semaphore lets go writes what another writes, too; who posts goes on meanwhile.
// The poster has only to post for the race to be reached: it need not do what comes after.
// portent: threads 3
// portent: ops post 1
// portent: ops semw 1
// portent: variable shared
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t go;
int shared, before_and_after;

static void *waiter(void *unused) {
  sem_wait(&go);
  shared = 1;
  return unused;
}

static void *other(void *unused) {
  usleep(30000);
  shared = 2;
  return unused;
}

int main(void) {
  pthread_t a, b;
  sem_init(&go, 0, 0);
  pthread_create(&a, 0, waiter, 0);
  pthread_create(&b, 0, other, 0);
  before_and_after = 1;
  sem_post(&go);
  before_and_after = 2;
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
