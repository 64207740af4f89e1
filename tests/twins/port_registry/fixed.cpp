// Which service listens on which port; services come and go.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

class Registry {
public:
    void add(const std::string &service, int port)
    {
        std::unique_lock<std::shared_mutex> lock(mutex_);
        ports_.emplace(service, port);
    }

    void remove(const std::string &service)
    {
        std::unique_lock<std::shared_mutex> lock(mutex_);
        ports_.erase(service);
    }

    int port_or(const std::string &service, int otherwise) const
    {
        std::shared_lock<std::shared_mutex> lock(mutex_);
        const auto found = ports_.find(service);
        return found == ports_.end() ? otherwise : found->second;
    }

private:
    mutable std::shared_mutex mutex_;
    std::map<std::string, int> ports_;
};

static void connect(const Registry &registry)
{
    constexpr int fallback = 8080;
    const int port = registry.port_or("web", fallback);
    std::puts(port == 80 || port == fallback ? "connected" : "no such port");
}

int main()
{
    Registry registry;
    registry.add("web", 80);
    registry.add("mail", 25);

    std::thread client(connect, std::cref(registry));
    std::thread shutdown([&registry] { registry.remove("web"); });
    client.join();
    shutdown.join();
    return EXIT_SUCCESS;
}
