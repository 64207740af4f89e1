// The current configuration, read without locks: a reader says in a hazard pointer what it reads, so that nobody frees it.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

struct Settings {
    int limit;
    int burst;
};

static std::atomic<const Settings *> current{new Settings{10, 20}};
static std::atomic<const Settings *> hazard{nullptr};

static const Settings *protect()
{
    const Settings *settings;
    do {
        settings = current.load();
        hazard.store(settings);
        // It may have been replaced, and freed, before the hazard was seen.
    } while (settings != current.load());
    return settings;
}

static int allowance()
{
    const Settings *settings = protect();
    const int allowed = settings->limit + settings->burst;
    hazard.store(nullptr);
    return allowed;
}

static void replace(const Settings *settings)
{
    const Settings *old = current.exchange(settings);
    while (hazard.load() == old)
        std::this_thread::yield();
    delete old;
}

static void serve()
{
    const int allowed = allowance();
    std::puts(allowed == 30 || allowed == 7 ? "allowed" : "nonsense");
}

int main()
{
    std::thread server(serve);
    std::thread administrator(replace, new Settings{2, 5});
    server.join();
    administrator.join();
    delete current.load();
    return EXIT_SUCCESS;
}
