// Latency statistics behind a spin lock: the sections are a few instructions long.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

class SpinLock {
public:
    void lock()
    {
        while (locked_.test_and_set(std::memory_order_acquire))
            std::this_thread::yield();
    }
    void unlock() { locked_.clear(std::memory_order_release); }

private:
    std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
};

class Latency {
public:
    void add(int micros)
    {
        std::lock_guard<SpinLock> guard(lock_);
        sum_ += micros;
        worst_ = std::max(worst_, micros);
        ++count_;
    }

    void print() const
    {
        std::lock_guard<SpinLock> guard(lock_);
        std::printf("%d requests, %d us on average, %d us at worst\n", count_, sum_ / std::max(count_, 1), worst_);
    }

private:
    mutable SpinLock lock_;
    int count_ = 0;
    int sum_ = 0;
    int worst_ = 0;
};

static void measure(Latency &latency, const std::vector<int> &samples)
{
    for (int sample : samples)
        latency.add(sample);
}

int main()
{
    Latency latency;
    std::thread get(measure, std::ref(latency), std::vector<int>{120, 80});
    std::thread put(measure, std::ref(latency), std::vector<int>{300, 100});
    get.join();
    put.join();
    latency.print();
    return 0;
}
