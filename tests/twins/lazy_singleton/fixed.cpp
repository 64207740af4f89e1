// A lookup table that is expensive to build: made by whoever needs it first.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class ZipIndex {
public:
    static const ZipIndex &instance()
    {
        ZipIndex *index = instance_.load(std::memory_order_acquire);
        if (!index) {
            std::lock_guard<std::mutex> guard(mutex_);
            index = instance_.load(std::memory_order_relaxed);
            if (!index) {
                index = new ZipIndex;
                instance_.store(index, std::memory_order_release);
            }
        }
        return *index;
    }

    // For leak checkers; nobody may use the index any more.
    static void dispose()
    {
        delete instance_.exchange(nullptr);
    }

    const std::string &city(std::size_t zip) const
    {
        static const std::string unknown = "?";
        return zip < cities_.size() ? cities_[zip] : unknown;
    }

private:
    ZipIndex()
    {
        for (const char *city : {"Aachen", "Bonn", "Celle", "Dachau"})
            cities_.emplace_back(city);
    }

    std::vector<std::string> cities_;

    static std::mutex mutex_;
    static std::atomic<ZipIndex *> instance_;
};

std::mutex ZipIndex::mutex_;
std::atomic<ZipIndex *> ZipIndex::instance_{nullptr};

static void resolve(std::size_t zip, std::string *city)
{
    *city = ZipIndex::instance().city(zip);
}

int main()
{
    std::string cities[2];
    std::thread first(resolve, 1, &cities[0]);
    std::thread second(resolve, 3, &cities[1]);
    first.join();
    second.join();
    std::printf("%s, %s\n", cities[0].c_str(), cities[1].c_str());
    ZipIndex::dispose();
    return 0;
}
