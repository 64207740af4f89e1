// A service that rereads its configuration on request while handlers use it.
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

struct Config {
    std::string upstream;
    int timeout_ms;
};

class ConfigStore {
public:
    explicit ConfigStore(Config initial) : current_(std::make_shared<const Config>(std::move(initial))) {}

    // What handlers work with for the length of one request.
    std::shared_ptr<const Config> snapshot() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return current_;
    }

    void reload(Config next)
    {
        auto fresh = std::make_shared<const Config>(std::move(next));
        std::lock_guard<std::mutex> guard(mutex_);
        current_.swap(fresh);
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const Config> current_;
};

static bool plausible(const Config &config)
{
    return config.upstream.rfind("https://", 0) == 0 && config.timeout_ms > 0;
}

static void serve(const ConfigStore &store, int requests, int *refused)
{
    for (int i = 0; i < requests; ++i) {
        const auto config = store.snapshot();
        if (!plausible(*config))
            ++*refused;
    }
}

int main()
{
    ConfigStore store({"https://primary.backend.example.internal:8443", 250});
    int refused = 0;

    std::thread handler(serve, std::cref(store), 2, &refused);
    std::thread reloader([&store] {
        store.reload({"https://secondary.backend.example.internal:9443", 500});
    });

    handler.join();
    reloader.join();
    std::printf("%d refused\n", refused);
    return 0;
}
