// A pool of two workers; tasks are handed in and their results come back as futures.
// Prints the sum of the results.
// portent: threads 3
// portent: stdout 30
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int workers)
    {
        for (int i = 0; i < workers; i++)
            workers_.emplace_back([this] { work(); });
    }
    ~Pool()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            closed_ = true;
        }
        ready_.notify_all();
        for (auto &worker : workers_)
            worker.join();
    }
    std::future<int> submit(std::function<int()> task)
    {
        auto packaged = std::make_shared<std::packaged_task<int()>>(std::move(task));
        auto result = packaged->get_future();
        {
            std::lock_guard<std::mutex> guard(mutex_);
            tasks_.push([packaged] { (*packaged)(); });
        }
        ready_.notify_one();
        return result;
    }

private:
    void work()
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> guard(mutex_);
                ready_.wait(guard, [this] { return closed_ || !tasks_.empty(); });
                if (tasks_.empty())
                    return;
                task = std::move(tasks_.front());
                tasks_.pop();
            }
            task();
        }
    }
    std::mutex mutex_;
    std::condition_variable ready_;
    std::queue<std::function<void()>> tasks_;
    bool closed_ = false;
    std::vector<std::thread> workers_;
};
int main()
{
    Pool pool(2);
    std::vector<std::future<int>> results;
    for (int i = 1; i <= 4; i++)
        results.push_back(pool.submit([i] { return i * i; }));
    int sum = 0;
    for (auto &result : results)
        sum += result.get();
    std::printf("%d\n", sum);
    return sum == 30 ? 0 : 1;
}
