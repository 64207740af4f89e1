// Ticket numbers of a help desk, drawn by several clerks. C11 threads and atomics.
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

#define CLERKS 2
#define TICKETS_EACH 2
#define TICKETS (CLERKS * TICKETS_EACH)

static atomic_uint next_number;
static atomic_int issued[TICKETS];

static unsigned draw_number(void)
{
    unsigned number = atomic_load(&next_number); // BUG
    atomic_store(&next_number, number + 1); // BUG
    return number;
}

static void open_ticket(const char *clerk, const char *subject)
{
    unsigned number = draw_number();

    assert(number < TICKETS);
    int before = atomic_exchange(&issued[number], 1);
    assert(before == 0 && "ticket issued twice"); // BUG
    (void)before;

    char line[80];
    snprintf(line, sizeof line, "%s: \"%s\"", clerk, subject);
    puts(line);
}

struct clerk {
    thrd_t thread;
    const char *name;
    const char *subjects[TICKETS_EACH];
};

static int work(void *argument)
{
    const struct clerk *clerk = argument;

    for (int i = 0; i < TICKETS_EACH; i++)
        open_ticket(clerk->name, clerk->subjects[i]);
    return 0;
}

int main(void)
{
    struct clerk clerks[CLERKS] = {
        {.name = "Ann", .subjects = {"printer on fire", "password forgotten"}},
        {.name = "Bob", .subjects = {"no network", "new keyboard"}},
    };

    for (int i = 0; i < CLERKS; i++)
        if (thrd_create(&clerks[i].thread, work, &clerks[i]) != thrd_success)
            return 2;
    for (int i = 0; i < CLERKS; i++)
        thrd_join(clerks[i].thread, NULL);
    return 0;
}
