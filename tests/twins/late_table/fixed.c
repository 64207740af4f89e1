// CRC-16 service: the table is built in the background at start-up so that the
// first request does not pay for it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE_SIZE 16

struct crc_table {
    uint16_t entry[TABLE_SIZE];
};

static _Atomic(struct crc_table *) table;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t table_built = PTHREAD_COND_INITIALIZER;

static void *build_table(void *unused)
{
    struct crc_table *fresh = malloc(sizeof *fresh);

    if (!fresh)
        exit(2);
    for (unsigned n = 0; n < TABLE_SIZE; n++) {
        uint16_t crc = (uint16_t)(n << 12);
        for (int bit = 0; bit < 4; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
        fresh->entry[n] = crc;
    }
    pthread_mutex_lock(&table_lock);
    atomic_store(&table, fresh);
    pthread_cond_broadcast(&table_built);
    pthread_mutex_unlock(&table_lock);
    return unused;
}

static struct crc_table *current_table(void)
{
    pthread_mutex_lock(&table_lock);
    while (!atomic_load(&table))
        pthread_cond_wait(&table_built, &table_lock);
    pthread_mutex_unlock(&table_lock);
    return atomic_load(&table);
}

static uint16_t crc16(const char *text)
{
    const struct crc_table *t = current_table();
    uint16_t crc = 0xffff;

    for (; *text; text++) {
        unsigned byte = (unsigned char)*text;
        crc = (uint16_t)((crc << 4) ^ t->entry[(crc >> 12) ^ (byte >> 4)]);
        crc = (uint16_t)((crc << 4) ^ t->entry[(crc >> 12) ^ (byte & 15)]);
    }
    return crc;
}

static void *serve(void *argument)
{
    uint16_t *result = argument;

    *result = crc16("123456789");
    return NULL;
}

int main(void)
{
    pthread_t builder, server;
    uint16_t result = 0;

    if (pthread_create(&builder, NULL, build_table, NULL) != 0)
        return 2;
    // Requests come in from here on.
    puts("listening");
    fflush(stdout);
    if (pthread_create(&server, NULL, serve, &result) != 0)
        return 2;
    pthread_join(server, NULL);
    pthread_join(builder, NULL);
    printf("crc %04x\n", result);
    free(atomic_load(&table));
    return 0;
}
