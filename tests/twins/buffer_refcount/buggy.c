// Reference-counted network buffers that several consumers share.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    atomic_int refs;
    size_t length;
    char data[];
};

static struct buffer *buffer_new(const char *text)
{
    size_t length = strlen(text);
    struct buffer *buffer = malloc(sizeof *buffer + length + 1);

    if (!buffer)
        abort();
    atomic_init(&buffer->refs, 1);
    buffer->length = length;
    memcpy(buffer->data, text, length + 1);
    return buffer;
}

static struct buffer *buffer_get(struct buffer *buffer)
{
    // Whoever calls this has a reference: nothing to order.
    atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    return buffer;
}

static void buffer_put(struct buffer *buffer)
{
    atomic_fetch_sub(&buffer->refs, 1); // BUG
    if (atomic_load(&buffer->refs) == 0) // BUG
        free(buffer); // BUG
}

struct consumer {
    pthread_t thread;
    struct buffer *buffer;
    unsigned sum;
};

static void *checksum(void *argument)
{
    struct consumer *consumer = argument;

    for (size_t i = 0; i < consumer->buffer->length; i++)
        consumer->sum += (unsigned char)consumer->buffer->data[i];
    buffer_put(consumer->buffer);
    return NULL;
}

int main(void)
{
    struct consumer consumers[2] = {0};
    struct buffer *packet = buffer_new("GET /");

    for (int i = 0; i < 2; i++) {
        consumers[i].buffer = buffer_get(packet);
        if (pthread_create(&consumers[i].thread, NULL, checksum, &consumers[i]) != 0)
            return 2;
    }
    buffer_put(packet);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i].thread, NULL);
    printf("checksums %u %u\n", consumers[0].sum, consumers[1].sum);
    return 0;
}
