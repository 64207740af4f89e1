// Writes to standard output and standard error, and says which number its next descriptor has. `flood`: without end;
// `much`: three million bytes, then a last line; `waits`: a line, then it waits for standard input to end.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int number;

static void *work(void *unused)
{
    number++;
    return unused;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    static char line[100];
    memset(line, 'x', sizeof line - 1);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    while (strcmp(what, "flood") == 0)
        puts(line);
    if (strcmp(what, "much") == 0)
        for (int i = 0; i < 30000; i++)
            puts(line);
    number = open("/dev/null", O_RDONLY);
    printf("out of %d\n", number);
    fprintf(stderr, "err\n");
    if (strcmp(what, "waits") == 0) {
        fflush(stdout);
        char byte;
        while (read(0, &byte, 1) > 0)
            ;
    }
    puts("last");
    return 0;
}
