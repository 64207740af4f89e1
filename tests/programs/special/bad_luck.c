// What makes it hard to have many runs of a program, each by the name of its first argument. Two threads count under a lock;
// whatever else happens, the sum is right.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static const char *mode = "";

static void *count(void *arg)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *stay(void *arg)
{
    pause();
    return arg;
}

// How many cores it may use, as the system says it: of the thread, of another thread, and of a child.
static void tell_cores(pthread_t other)
{
    cpu_set_t own, others, one;
    sched_getaffinity(0, sizeof own, &own);
    pthread_getaffinity_np(other, sizeof others, &others);
    pid_t child = fork();
    if (child == 0)
        _exit(sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) & 127 : 127);
    int status;
    waitpid(child, &status, 0);
    printf("%d cores, %d of another thread, %d of a child", CPU_COUNT(&own), CPU_COUNT(&others), WEXITSTATUS(status));
    // What it chooses itself is what it is told from then on, and others keep theirs.
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &own))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    sched_getaffinity(0, sizeof own, &own);
    pthread_getaffinity_np(other, sizeof others, &others);
    printf("; then %d, and %d\n", CPU_COUNT(&own), CPU_COUNT(&others));
}

// Another file in place of the program's own, as a build leaves it: one byte longer.
__attribute__((no_sanitize("thread")))
static void rebuild(void)
{
    char own[4096], beside[4200], bytes[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length] = 0;
    snprintf(beside, sizeof beside, "%s.new", own);
    int from = open(own, O_RDONLY), to = open(beside, O_CREAT | O_TRUNC | O_WRONLY, 0755);
    while ((length = read(from, bytes, sizeof bytes)) > 0)
        write(to, bytes, length);
    write(to, "x", 1);
    close(from);
    close(to);
    rename(beside, own);
}

// Before the runtime begins: the priorities below 101 are the compiler's own.
__attribute__((no_sanitize("thread")))
static void before_everything(int argc, char **argv, char **envp)
{
    (void)envp;
    mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "rebuilt") == 0) {
        rebuild();
    } else if (strcmp(mode, "early-crash") == 0) {
        // The second process of all, which would be the fork server.
        int there = open("started", O_CREAT | O_EXCL | O_WRONLY, 0600);
        int again = there < 0 ? open("again", O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
        if (there >= 0)
            close(there);
        if (again >= 0)
            raise(SIGSEGV);
    } else if (strcmp(mode, "early-thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, stay, NULL);
        pthread_detach(thread);
    } else if (strcmp(mode, "early-file") == 0) {
        open("/dev/null", O_RDONLY);
    } else if (strcmp(mode, "early-output") == 0) {
        write(1, "early\n", 6);
    } else if (strcmp(mode, "early-number") == 0) {
        static volatile pid_t number;
        number = getpid();
    } else if (strcmp(mode, "early-memory") == 0) {
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    } else if (strcmp(mode, "early-input") == 0) {
        char first;
        read(0, &first, 1);
    }
}
__attribute__((section(".init_array.00050"), used)) static void (*early)(int, char **, char **) = before_everything;

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, count, NULL);
    pthread_create(&two, NULL, count, NULL);
    if (strcmp(mode, "forks") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    } else if (strcmp(mode, "daemon") == 0) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                for (;;)
                    pause();
            _exit(0);
        }
        wait(NULL);
    } else if (strcmp(mode, "leaks-threads") == 0) {
        pthread_t left;
        pthread_create(&left, NULL, stay, NULL);
        pthread_detach(left);
    } else if (strcmp(mode, "terminal") == 0) {
        int terminal = open("/dev/tty", O_RDWR);
        printf("a terminal: %s, in the foreground: %s\n", terminal >= 0 ? "yes" : "no",
               terminal >= 0 && tcgetpgrp(terminal) == getpgrp() ? "yes" : "no");
    } else if (strcmp(mode, "never-ends") == 0) {
        pthread_mutex_lock(&lock);
        int late = sum > 0;
        pthread_mutex_unlock(&lock);
        while (late)
            ;
    } else if (strcmp(mode, "cores") == 0) {
        tell_cores(one);
    } else if (strcmp(mode, "orphan") == 0) {
        printf("%s\n", getppid() > 1 ? "has a parent" : "has none");
    }
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", sum);
    return 0;
}
