// A cache of thumbnails with a hook that is called for whatever is evicted.
#include <cstdio>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

class ThumbnailCache {
public:
    using Hook = std::function<void(const std::string &)>;

    explicit ThumbnailCache(std::size_t capacity) : capacity_(capacity) {}

    void on_evict(Hook hook) { hook_ = std::move(hook); }

    void add(const std::string &file)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        files_.push_front(file);
        if (files_.size() > capacity_) {
            hook_(files_.back()); // BUG
            files_.pop_back();
        }
    }

    void remove(const std::string &file)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        files_.remove(file);
    }

    std::size_t size() const
    {
        std::lock_guard<std::mutex> guard(mutex_); // BUG
        return files_.size();
    }

private:
    const std::size_t capacity_;
    Hook hook_;
    mutable std::mutex mutex_;
    std::list<std::string> files_;
};

// Opens two pictures and closes them again.
static void browse(ThumbnailCache &cache, const std::string &album)
{
    cache.add(album + "/1.jpg");
    cache.add(album + "/2.jpg");
    cache.remove(album + "/1.jpg");
    cache.remove(album + "/2.jpg");
}

int main()
{
    ThumbnailCache cache(3);
    std::mutex log_mutex;
    std::string log;
    cache.on_evict([&](const std::string &file) {
        const std::size_t left = cache.size();
        std::lock_guard<std::mutex> guard(log_mutex);
        log += file + " evicted, " + std::to_string(left) + " left\n";
    });

    std::thread first(browse, std::ref(cache), "summer");
    std::thread second(browse, std::ref(cache), "winter");
    first.join();
    second.join();
    std::fputs(log.c_str(), stderr);
    std::printf("%zu thumbnails left\n", cache.size());
    return 0;
}
