// Two threads count, and meanwhile the program spoils the recording of its own run in the way that it was told of.
// Expected: its end is its own affair; the recorder gives an error, or a trace that is valid up to there.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *count(void *argument) {
  (void)argument;
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 200; i++) {
      pthread_mutex_lock(&lock);
      counter++;
      pthread_mutex_unlock(&lock);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void spoil(const char *how, const char *log) {
  int file = open(log, O_RDWR);
  if (file < 0)
    return;
  struct stat found;
  fstat(file, &found);
  long records = 4096 + (1 << 20);
  if (!strcmp(how, "truncate"))
    (void)!ftruncate(file, 0);
  if (!strcmp(how, "shorten"))
    (void)!ftruncate(file, records + 4096);
  if (!strcmp(how, "remove"))
    unlink(log);
  if (!strcmp(how, "fifo")) {
    unlink(log);
    mkfifo(log, 0600);
  }
  if (!strcmp(how, "header"))
    (void)!pwrite(file, "rubbish", 7, 0);
  if (!strcmp(how, "overwrite")) {
    unsigned char rubbish[512];
    unsigned state = 12345;
    for (size_t i = 0; i < sizeof rubbish; i++)
      rubbish[i] = (state = state * 1103515245 + 12345) >> 16;
    for (long at = records + 700; at < records + 4096; at += 1024)
      (void)!pwrite(file, rubbish, sizeof rubbish, at);
  }
  close(file);
}

int main(int argc, char **argv) {
  pthread_t a, b;
  char log[4200];
  const char *session = getenv("PORTENT_SESSION");
  snprintf(log, sizeof log, "%s/log", session ? session : ".");
  pthread_barrier_init(&barrier, NULL, 3);
  pthread_create(&a, NULL, count, NULL);
  pthread_create(&b, NULL, count, NULL);
  for (int round = 0; round < 2; round++) {
    pthread_barrier_wait(&barrier);
    if (argc > 1 && session && round == 0)
      spoil(argv[1], log);
    pthread_barrier_wait(&barrier);
  }
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  return 0;
}
