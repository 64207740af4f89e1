// A sleep in place of a join: main takes for granted that the worker is done after a second. `bug_sleep wait`: so does a
// timed wait on a condition that nobody notifies in time.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *work(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&lock);
        done++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    if (count > 1 && strcmp(words[1], "wait") == 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_mutex_lock(&lock);
        while (pthread_cond_timedwait(&never, &lock, &until) == 0)
            ;
        pthread_mutex_unlock(&lock);
    } else {
        sleep(1);
    }
    int seen = done;
    pthread_join(thread, NULL);
    printf("%s\n", seen == 50 ? "all done" : "too early");
    return seen == 50 ? 0 : 7;
}
