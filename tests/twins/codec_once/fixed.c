// Codecs are registered when the first stream is opened. C11 threads.
#include <stdio.h>
#include <string.h>
#include <threads.h>

#define MOST_CODECS 8

struct codec {
    char name[8];
    int bits;
};

static struct codec codecs[MOST_CODECS];
static int codec_count;
static once_flag initialized = ONCE_FLAG_INIT;

static void add_codec(const char *name, int bits)
{
    if (codec_count == MOST_CODECS)
        return;
    strncpy(codecs[codec_count].name, name, sizeof codecs[0].name - 1);
    codecs[codec_count].bits = bits;
    codec_count++;
}

static void register_codecs(void)
{
    add_codec("pcm", 16);
    add_codec("ulaw", 8);
    add_codec("flac", 24);
}

static const struct codec *open_stream(const char *name)
{
    call_once(&initialized, register_codecs);
    for (int i = 0; i < codec_count; i++)
        if (strcmp(codecs[i].name, name) == 0)
            return &codecs[i];
    return NULL;
}

struct player {
    thrd_t thread;
    const char *codec;
};

static int play(void *argument)
{
    struct player *player = argument;
    const struct codec *codec = open_stream(player->codec);

    return codec ? codec->bits : -1;
}

int main(void)
{
    struct player players[] = {{.codec = "ulaw"}, {.codec = "flac"}};
    int bits[2];

    for (int i = 0; i < 2; i++)
        if (thrd_create(&players[i].thread, play, &players[i]) != thrd_success)
            return 2;
    for (int i = 0; i < 2; i++)
        thrd_join(players[i].thread, &bits[i]);
    printf("%s %d bits, %s %d bits\n", players[0].codec, bits[0], players[1].codec, bits[1]);
    return bits[0] == 8 && bits[1] == 24 ? 0 : 1;
}
