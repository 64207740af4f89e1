// Two threads wait for each other in loops that read a flag as plain volatile, without giving way.
// Prints the rounds: both loops come to an end.
// portent: threads 2
// portent: stdout 20 rounds
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static volatile int flag, answered;

static void *answers(void *unused)
{
    (void)unused;
    for (int round = 1; round <= 20; round++) {
        while (flag != round)
            ;
        answered = round;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, answers, NULL) == 0);
    for (int round = 1; round <= 20; round++) {
        flag = round;
        while (answered != round)
            ;
    }
    pthread_join(thread, NULL);
    printf("%d rounds\n", (int)answered);
    return 0;
}
