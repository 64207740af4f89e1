// Reads random bytes from the device, with read and with stdio; what the program does depends on them.
// Prints numbers that differ from run to run; a replay prints the same again.
// portent: threads 1
// portent: stdout * *
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int steps;

int main(void)
{
    unsigned a, b;
    int file = open("/dev/urandom", O_RDONLY);
    assert(read(file, &a, sizeof a) == sizeof a);
    close(file);
    FILE *stream = fopen("/dev/urandom", "r");
    assert(stream && fread(&b, sizeof b, 1, stream) == 1);
    fclose(stream);
    for (unsigned i = 0; i < (a ^ b) % 64; i++)
        steps++;
    printf("%u %u\n", a, b);
    return 0;
}
