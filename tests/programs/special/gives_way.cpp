// Threads that make way for each other: `gives_way WHAT`.
// scoped, timed: two mutexes in two orders, the second by a try or with a time limit: nobody waits for ever.
// nested: the same with plain locks, which is a deadlock.
// sleep: a function whose two halves are meant to be apart, as it sleeps between them; `awake` does not sleep.
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

static std::timed_mutex a, b;
static int shared;

template <class Lock> static void both(Lock lock)
{
    std::thread one([&] { lock(a, b); });
    std::thread two([&] { lock(b, a); });
    one.join();
    two.join();
}

static void scoped(std::timed_mutex &first, std::timed_mutex &second)
{
    std::scoped_lock hold(first, second);
    shared++;
}

static void timed(std::timed_mutex &first, std::timed_mutex &second)
{
    std::lock_guard<std::timed_mutex> hold(first);
    if (second.try_lock_for(std::chrono::seconds(1))) {
        shared++;
        second.unlock();
    }
}

static void nested(std::timed_mutex &first, std::timed_mutex &second)
{
    std::lock_guard<std::timed_mutex> hold(first);
    std::lock_guard<std::timed_mutex> also(second);
    shared++;
}

static void twice(bool sleeps)
{
    {
        std::lock_guard<std::timed_mutex> hold(a);
        shared++;
    }
    if (sleeps)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::lock_guard<std::timed_mutex> hold(a);
    shared++;
}

static void once()
{
    std::lock_guard<std::timed_mutex> hold(a);
    shared += 2;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "scoped"))
        both(scoped);
    if (!strcmp(what, "timed"))
        both(timed);
    if (!strcmp(what, "nested"))
        both(nested);
    if (!strcmp(what, "sleep") || !strcmp(what, "awake")) {
        std::thread one(twice, !strcmp(what, "sleep")), two(once);
        one.join();
        two.join();
    }
    return 0;
}
