// A registry of counters under a spin lock made of an atomic flag; three threads register and count.
// Prints how often they counted: the lock loses nothing, and the loops that wait for it make no long runs.
// portent: threads 4
// portent: stdout 12
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

class SpinLock {
public:
    void lock()
    {
        while (locked_.exchange(true, std::memory_order_acquire))
            while (locked_.load(std::memory_order_relaxed))
                ;
    }
    void unlock() { locked_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> locked_{false};
};

class Registry {
public:
    void count(const std::string &name)
    {
        lock_.lock();
        bool found = false;
        for (auto &entry : entries_)
            if (entry.first == name) {
                entry.second++;
                found = true;
            }
        if (!found)
            entries_.emplace_back(name, 1);
        lock_.unlock();
    }
    int total()
    {
        lock_.lock();
        int sum = 0;
        for (auto &entry : entries_)
            sum += entry.second;
        lock_.unlock();
        return sum;
    }

private:
    SpinLock lock_;
    std::vector<std::pair<std::string, int>> entries_;
};

int main()
{
    Registry registry;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&registry, t] {
            for (int i = 0; i < 4; i++)
                registry.count(i % 2 ? "requests" : t == 0 ? "errors" : "hits");
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%d\n", registry.total());
    return registry.total() == 12 ? 0 : 1;
}
