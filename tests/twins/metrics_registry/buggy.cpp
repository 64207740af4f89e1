// Request metrics of a small HTTP front end. Handlers look their endpoint up
// once and then bump its counters; the report is printed when the server drains.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Endpoint {
    explicit Endpoint(std::string p) : path(std::move(p)) {}

    const std::string path;
    unsigned long requests = 0;
    unsigned long bytes_out = 0;

    void record(unsigned long bytes)
    {
        requests++; // BUG
        bytes_out += bytes; // BUG
    }
};

class Registry {
public:
    Endpoint &endpoint(const std::string &path)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        auto &slot = endpoints_[path];
        if (!slot)
            slot = std::make_unique<Endpoint>(path);
        return *slot; // stable: entries are never removed
    }

    void report() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        for (const auto &[path, endpoint] : endpoints_)
            std::printf("%-8s %lu requests, %lu bytes\n", path.c_str(), endpoint->requests, endpoint->bytes_out);
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Endpoint>> endpoints_;
};

void handle(Registry &registry, const std::vector<std::string> &paths)
{
    for (const auto &path : paths) {
        std::string body = "hello from " + path;
        registry.endpoint(path).record(body.size());
    }
}

} // namespace

int main()
{
    Registry registry;
    std::thread first(handle, std::ref(registry), std::vector<std::string>{"/", "/health"});
    std::thread second(handle, std::ref(registry), std::vector<std::string>{"/health", "/login"});
    first.join();
    second.join();
    registry.report();
    return 0;
}
