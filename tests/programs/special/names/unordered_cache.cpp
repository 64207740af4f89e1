// A cache of strings in an unordered_map member; the size is read without the lock.
// portent: object cache*
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

namespace app {
class Cache {
public:
    void put(const std::string& key, std::string value) {
        std::lock_guard<std::mutex> guard(mutex_);
        entries_[key] = std::move(value);
    }
    std::size_t size() const { return entries_.size(); }

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::string> entries_;
};
}

int main() {
    app::Cache cache;
    std::thread writer([&] { cache.put("greeting", "a text that does not fit into a short string"); });
    std::size_t size = cache.size();
    writer.join();
    return size > 1;
}
