// A warehouse: orders, stock and the journal have a lock each.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t orders_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

static int open_orders = 3;
static int stock = 10;
static int journal_lines;

// Lock order: orders, stock, journal.

static void *ship(void *unused)
{
    pthread_mutex_lock(&orders_lock);
    if (open_orders > 0) {
        pthread_mutex_lock(&stock_lock);
        open_orders--;
        stock--;
        pthread_mutex_unlock(&stock_lock);
    }
    pthread_mutex_unlock(&orders_lock);
    return unused;
}

static void *restock(void *unused)
{
    pthread_mutex_lock(&stock_lock);
    stock += 5;
    pthread_mutex_lock(&journal_lock);
    journal_lines++;
    pthread_mutex_unlock(&journal_lock);
    pthread_mutex_unlock(&stock_lock);
    return unused;
}

// Writes the open orders to the journal at the end of the day.
static void *close_day(void *argument)
{
    int *carried_over = argument;

    pthread_mutex_lock(&orders_lock);
    pthread_mutex_lock(&journal_lock);
    journal_lines++;
    *carried_over = open_orders;
    pthread_mutex_unlock(&journal_lock);
    pthread_mutex_unlock(&orders_lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int carried_over = -1;

    if (pthread_create(&threads[0], NULL, ship, NULL) != 0 ||
        pthread_create(&threads[1], NULL, restock, NULL) != 0 ||
        pthread_create(&threads[2], NULL, close_day, &carried_over) != 0)
        return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);

    if (carried_over < 2 || carried_over > 3) {
        fprintf(stderr, "%d orders carried over\n", carried_over);
        return 1;
    }
    printf("stock %d, journal lines %d\n", stock, journal_lines);
    return 0;
}
