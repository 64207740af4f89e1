// Cached DNS answers. A refresher renews them before they expire, so look-ups
// hardly ever have to.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct answer {
    char name[16];
    unsigned address;
    int expires; // in ticks of the resolver's clock
};

static pthread_rwlock_t answers_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct answer answers[] = {{"mail", 0x0a000001, 10}, {"www", 0x0a000002, 1}};
static const int now = 5;

static void renew_locked(struct answer *answer)
{
    answer->address += 0x100;
    answer->expires = now + 10;
}

static void *refresh(void *unused)
{
    pthread_rwlock_wrlock(&answers_lock);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i].expires < now)
            renew_locked(&answers[i]);
    pthread_rwlock_unlock(&answers_lock);
    return unused;
}

static struct answer *find_locked(const char *name)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (strcmp(answers[i].name, name) == 0)
            return &answers[i];
    return NULL;
}

static unsigned resolve(const char *name)
{
    unsigned address = 0;

    pthread_rwlock_rdlock(&answers_lock);
    struct answer *answer = find_locked(name);
    if (answer && answer->expires < now) {
        // Expired in the meantime: renew it here.
        pthread_rwlock_wrlock(&answers_lock); // BUG
        renew_locked(answer);
        pthread_rwlock_unlock(&answers_lock);
    }
    if (answer)
        address = answer->address;
    pthread_rwlock_unlock(&answers_lock);
    return address;
}

static void *client(void *argument)
{
    unsigned *addresses = argument;

    addresses[0] = resolve("mail");
    addresses[1] = resolve("www");
    return NULL;
}

int main(void)
{
    pthread_t refresher, reader;
    unsigned addresses[2] = {0, 0};

    if (pthread_create(&refresher, NULL, refresh, NULL) != 0)
        return 2;
    puts("resolver started");
    fflush(stdout);
    if (pthread_create(&reader, NULL, client, addresses) != 0)
        return 2;
    pthread_join(refresher, NULL);
    pthread_join(reader, NULL);
    printf("mail %08x, www %08x\n", addresses[0], addresses[1]);
    return addresses[1] == 0x0a000102 ? 0 : 1;
}
