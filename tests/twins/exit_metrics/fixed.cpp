// Metrics of a command line tool: names of counters are collected wherever work
// is done, also by a thread that nobody waits for, and dropped when the tool ends.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

class Metrics {
public:
    void count(std::string name) {
        std::lock_guard<std::mutex> guard(lock_);
        names_.push_back(std::move(name));
    }

    std::size_t size() {
        std::lock_guard<std::mutex> guard(lock_);
        return names_.size();
    }

private:
    std::mutex lock_;
    std::vector<std::string> names_;
};

static Metrics &metrics() {
    // Never destroyed: whoever still runs when the tool ends may count on.
    static Metrics &all = *new Metrics;
    return all;
}

static void refresh_cache() {
    metrics().count("cache refreshed");
}

int main() {
    metrics().count("started");
    // The cache may be refreshed or not by the time the answer is printed: nobody cares.
    std::thread(refresh_cache).detach();
    const bool counted = metrics().size() > 0;
    std::puts(counted ? "counting" : "not counting");
    return 0;
}
