// A cache behind a pimpl: `size` reads the map without the lock.
// portent: object cache.impl_->entries (size) in main()
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

class SessionCache {
public:
    SessionCache();
    ~SessionCache();
    void put(const std::string& key, int value);
    std::size_t size() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct SessionCache::Impl {
    mutable std::mutex mutex;
    std::unordered_map<std::string, int> entries;
};

SessionCache::SessionCache() : impl_(std::make_unique<Impl>()) {}
SessionCache::~SessionCache() = default;

void SessionCache::put(const std::string& key, int value)
{
    std::lock_guard<std::mutex> guard(impl_->mutex);
    impl_->entries[key] = value;
}

std::size_t SessionCache::size() const
{
    return impl_->entries.size();
}

int main()
{
    SessionCache cache;
    std::thread writer([&] {
        cache.put("alice", 1);
        cache.put("bob", 2);
    });
    std::size_t seen = 0;
    std::thread reader([&] { seen = cache.size(); });
    writer.join();
    reader.join();
    return seen > 2;
}
