// Connections to back ends, kept open between requests and dropped when idle.
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

class Connection {
public:
    explicit Connection(std::string host) : host_(std::move(host)) {}

    std::size_t send(const std::string &request)
    {
        sent_.fetch_add(1);
        return host_.size() + request.size();
    }
    int sent() const { return sent_.load(); }

private:
    const std::string host_;
    std::atomic<int> sent_{0};
};

class ConnectionCache {
public:
    std::shared_ptr<Connection> open(const std::string &host)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        auto &connection = connections_[host];
        if (!connection)
            connection = std::make_shared<Connection>(host);
        return connection; // in use by the caller as well, whatever the cache does
    }

    // Closes what was used less often than that.
    std::size_t evict(int least)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        std::size_t evicted = 0;
        for (auto at = connections_.begin(); at != connections_.end();) {
            if (at->second->sent() < least) {
                at = connections_.erase(at);
                ++evicted;
            } else {
                ++at;
            }
        }
        return evicted;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Connection>> connections_;
};

int main()
{
    ConnectionCache cache;
    cache.open("db.internal");
    std::size_t bytes = 0;

    std::thread client([&] {
        const auto connection = cache.open("search.internal");
        bytes += connection->send("GET /query?q=portent");
        bytes += connection->send("GET /stats");
    });
    std::thread janitor([&] { cache.evict(1); });

    client.join();
    janitor.join();
    std::printf("%zu bytes sent\n", bytes);
    return 0;
}
