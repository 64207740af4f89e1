// The program handles its own SIGSEGV: it says so on an alternate stack and leaves with a status of its own.
// Exits with 11; Portent must not take the signal for itself.
// portent: exit 11
// portent: threads 2
// portent: stdout caught at 0x10
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int *volatile bad = (int *)0x10;

static void caught(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char text[64];
    int length = snprintf(text, sizeof text, "caught at %p\n", info->si_addr);
    assert(write(STDOUT_FILENO, text, (size_t)length) == length);
    _exit(11);
}

static void *crashes(void *unused)
{
    (void)unused;
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    assert(sigaltstack(&stack, NULL) == 0);
    *bad = 1;
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    assert(sigaction(SIGSEGV, &action, NULL) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, crashes, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
