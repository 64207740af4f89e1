// Counts the words of several texts, each in a thread of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " ,.;\n"

struct text {
    char *content;
    size_t words;
    size_t longest;
};

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (!copy)
        abort();
    strcpy(copy, text);
    return copy;
}

static void note_word(struct text *text, const char *word)
{
    size_t length = strlen(word);
    text->words++;
    if (length > text->longest)
        text->longest = length;
}

static void *count_words(void *argument)
{
    struct text *text = argument;
    char *word = strtok(text->content, SEPARATORS); // BUG
    while (word) {
        note_word(text, word);
        word = strtok(NULL, SEPARATORS); // BUG
    }
    return NULL;
}

int main(void)
{
    struct text texts[2] = {
        {copy_of("It was the best of times"), 0, 0},
        {copy_of("Call me Ishmael."), 0, 0},
    };
    pthread_t counters[2];

    for (int i = 0; i < 2; i++)
        if (pthread_create(&counters[i], NULL, count_words, &texts[i]) != 0)
            return EXIT_FAILURE;
    for (int i = 0; i < 2; i++)
        pthread_join(counters[i], NULL);

    for (int i = 0; i < 2; i++) {
        printf("text %d: %zu words, the longest has %zu letters\n", i, texts[i].words, texts[i].longest);
        free(texts[i].content);
    }
    return EXIT_SUCCESS;
}
