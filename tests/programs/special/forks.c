// A server in small. The parent has one thread and forks a child that has several, with a race in it.
// `forks daemon`: the child is a daemon, which the parent does not wait for; `forks for-ever`: one that never ends.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int served;

static void *serve(void *arg) { served++; return arg; }

static void work(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, serve, NULL);
    pthread_create(&two, NULL, serve, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}

int main(int count, char **words)
{
    int is_daemon = count > 1;
    int stays = count > 1 && strcmp(words[1], "for-ever") == 0;
    pid_t child = fork();
    if (child == 0) {
        if (is_daemon) {
            setsid();
            if (fork() != 0)
                _exit(0);
        }
        work();
        while (stays)
            pause();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}
