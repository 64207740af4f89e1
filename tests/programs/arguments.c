// Arguments, environment and the program's own path arrive as they would without Portent.
// Prints them.
// portent: args one "two words" --three -- -o x
// portent: threads 1
// portent: stdout 6 arguments: one|two words|--three|--|-o|x
// portent: stdout own path ends in arguments
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    printf("%d arguments: ", argc - 1);
    for (int i = 1; i < argc; i++)
        printf("%s%s", argv[i], i + 1 < argc ? "|" : "\n");
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert(length > 0);
    path[length] = 0;
    printf("own path ends in %s\n", strrchr(path, '/') + 1);
    return 0;
}
