// Periodic tasks: the base class owns the thread, derived classes say what to do.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

class PeriodicTask {
public:
    virtual ~PeriodicTask() { stop(); }

    PeriodicTask(const PeriodicTask &) = delete;
    PeriodicTask &operator=(const PeriodicTask &) = delete;

    int ticks() const { return ticks_.load(); }

protected:
    explicit PeriodicTask(std::chrono::milliseconds period) : period_(period) {}

    // To be called when the derived object is complete.
    void start() { thread_ = std::thread(&PeriodicTask::run, this); }

    void stop()
    {
        stopping_.store(true);
        if (thread_.joinable())
            thread_.join();
    }

    virtual void tick() = 0;

private:
    void run()
    {
        // At most a handful; a sampler is replaced every few periods.
        for (int i = 0; i < 4 && !stopping_.load(); ++i) {
            tick(); // BUG
            ticks_.fetch_add(1);
            std::this_thread::sleep_for(period_);
        }
    }

    const std::chrono::milliseconds period_;
    std::atomic<bool> stopping_{false};
    std::atomic<int> ticks_{0};
    std::thread thread_;
};

class LoadSampler : public PeriodicTask {
public:
    LoadSampler() : PeriodicTask(std::chrono::milliseconds(3)) { start(); }
    ~LoadSampler() override = default; // BUG

protected:
    void tick() override
    {
        load_ = load_ * 3 / 4 + 25;
        samples_.push_back(load_); // BUG
    }

private:
    int load_ = 0;
    std::vector<int> samples_;
};

int main()
{
    {
        LoadSampler sampler;
        while (sampler.ticks() < 2)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::puts("sampler stopped");
    return 0;
}
