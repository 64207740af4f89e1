// Everything that is done to an account is written to an audit file, which is closed when the bank closes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CLERKS 2

static FILE *audit;
static pthread_mutex_t bank = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t paid_out = PTHREAD_COND_INITIALIZER;
static long balance = 100;
static int withdrawals;

static void note(int clerk, long amount)
{
    // One call, one line: streams have a lock of their own.
    fprintf(audit, "clerk %d: %ld\n", clerk, amount); // BUG
}

static void withdraw(int clerk, long amount)
{
    pthread_mutex_lock(&bank);
    balance -= amount;
    withdrawals++;
    pthread_cond_signal(&paid_out);
    pthread_mutex_unlock(&bank);
    note(clerk, amount); // BUG
}

static void *clerk(void *argument)
{
    withdraw(*(int *)argument, 10);
    return NULL;
}

static void close_bank(void)
{
    pthread_mutex_lock(&bank);
    while (withdrawals < CLERKS)
        pthread_cond_wait(&paid_out, &bank);
    pthread_mutex_unlock(&bank);
    fclose(audit); // BUG
}

int main(void)
{
    int numbers[CLERKS];
    pthread_t clerks[CLERKS];

    audit = tmpfile();
    if (!audit)
        return EXIT_FAILURE;
    for (int i = 0; i < CLERKS; i++) {
        numbers[i] = i + 1;
        if (pthread_create(&clerks[i], NULL, clerk, &numbers[i]) != 0)
            return EXIT_FAILURE;
    }
    close_bank();
    for (int i = 0; i < CLERKS; i++)
        pthread_join(clerks[i], NULL);
    printf("balance %ld\n", balance);
    return EXIT_SUCCESS;
}
