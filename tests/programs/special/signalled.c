// Two threads count; then the program gets the signal that it was told of.
// Expected: it ends by that signal, or with 0 without one.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *argument) {
  (void)argument;
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t a, b;
  pthread_create(&a, NULL, count, NULL);
  pthread_create(&b, NULL, count, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  if (argc > 1)
    kill(getpid(), atoi(argv[1]));
  return 0;
}
