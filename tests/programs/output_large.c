// Prints 1 MB from two threads that take turns, through stdio and directly, and some to standard error.
// All of it arrives, in order.
// portent: threads 3
// portent: stdout-bytes 1048576
// portent: stdout-hash f31fa4fa
// portent: stderr half
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next;

static void *prints(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        int mine = next++;
        if (mine < 1024) {
            char line[1025];
            int length = snprintf(line, sizeof line, "line %d ", mine);
            memset(line + length, 'a' + mine % 26, (size_t)(1023 - length));
            line[1023] = '\n';
            if (mine % 2) {
                fflush(stdout);
                for (int done = 0; done < 1024;) {
                    ssize_t part = write(STDOUT_FILENO, line + done, (size_t)(1024 - done));
                    assert(part > 0);
                    done += (int)part;
                }
            } else {
                assert(fwrite(line, 1, 1024, stdout) == 1024);
            }
            if (mine == 512)
                fprintf(stderr, "half\n");
        }
        pthread_mutex_unlock(&lock);
        if (mine >= 1024)
            return NULL;
    }
}

int main(void)
{
    pthread_t a, b;
    assert(pthread_create(&a, NULL, prints, NULL) == 0);
    assert(pthread_create(&b, NULL, prints, NULL) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
