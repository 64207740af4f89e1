// Asks for the time in every way, and branches on it; time does not go backwards.
// Prints times that differ from run to run; a replay prints the same again.
// portent: threads 2
// portent: stdout real *
// portent: stdout fine *
// portent: stdout loops *
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loops[2];

static void *depends_on_time(void *argument)
{
    int me = *(int *)argument;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int count = (int)(now.tv_nsec / 1000 % 50);
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&lock);
        loops[me]++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    struct timespec a, b;
    struct timeval day;
    clock_gettime(CLOCK_REALTIME, &a);
    gettimeofday(&day, NULL);
    time_t seconds = time(NULL);
    timespec_get(&b, TIME_UTC);
    assert(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
    assert(seconds >= a.tv_sec && day.tv_sec >= a.tv_sec);
    struct tm broken;
    assert(localtime_r(&seconds, &broken) && broken.tm_year > 100);
    printf("real %ld.%09ld %ld.%06ld %ld\n", (long)a.tv_sec, a.tv_nsec, (long)day.tv_sec, (long)day.tv_usec, (long)seconds);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    printf("fine %ld %ld %ld\n", a.tv_nsec, b.tv_nsec, (long)clock());
    pthread_t thread;
    int zero = 0, one = 1;
    assert(pthread_create(&thread, NULL, depends_on_time, &zero) == 0);
    depends_on_time(&one);
    pthread_join(thread, NULL);
    printf("loops %d %d\n", loops[0], loops[1]);
    return 0;
}
