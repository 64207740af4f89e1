// A thread pool whose statistics are kept per worker in an array of structs, and summed while workers run.
// portent: object pool.stats_[*].executed in main()
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace engine {

struct WorkerStats {
    unsigned long executed = 0;
    unsigned long stolen = 0;
};

class ThreadPool {
public:
    explicit ThreadPool(int count)
    {
        for (int i = 0; i < count; i++)
            workers_.emplace_back([this, i] { run(i); });
    }
    ~ThreadPool()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (auto& worker : workers_)
            worker.join();
    }
    void submit(std::function<void()> task)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            tasks_.push_back(std::move(task));
        }
        wake_.notify_one();
    }
    unsigned long executed() const
    {
        unsigned long sum = 0;
        for (const auto& stats : stats_)
            sum += stats.executed;
        return sum;
    }

private:
    void run(int id)
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
            }
            task();
            stats_[id].executed++;
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    std::array<WorkerStats, 4> stats_{};
    std::vector<std::thread> workers_;
    bool stopping_ = false;
};

} // namespace engine

int main()
{
    engine::ThreadPool pool(2);
    for (int i = 0; i < 2; i++)
        pool.submit([] {});
    return pool.executed() > 2;
}
