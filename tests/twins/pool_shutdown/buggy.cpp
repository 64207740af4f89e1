// A thread pool. Crawling a page may find links, which are submitted in turn.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class ThreadPool {
public:
    explicit ThreadPool(int threads)
    {
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this] { work(); });
    }
    ~ThreadPool() { shutdown(); }

    void submit(std::function<void()> task)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (stopping_)
            throw std::runtime_error("submit on a stopped pool"); // BUG
        tasks_.push_back(std::move(task));
        wake_.notify_one();
    }

    // Finishes what is queued.
    void shutdown()
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            stopping_ = true;
            wake_.notify_all();
        }
        for (auto &thread : threads_)
            thread.join();
        threads_.clear();
    }

private:
    void work()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
            if (tasks_.empty())
                return;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task(); // BUG
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

class Crawler {
public:
    void crawl(const std::string &url, int depth)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            ++pages_;
            progress_.notify_all();
        }
        if (depth > 0)
            pool_.submit([this, url, depth] { crawl(url + "/next", depth - 1); }); // BUG
    }
    void start(const std::string &url)
    {
        pool_.submit([this, url] { crawl(url, 1); });
    }
    // One page is enough to show something.
    void wait_and_stop()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        progress_.wait(lock, [this] { return pages_ >= 1; });
        lock.unlock();
        // Let what is in flight settle.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        pool_.shutdown();
    }

private:
    std::mutex mutex_;
    std::condition_variable progress_;
    int pages_ = 0;
    ThreadPool pool_{2};
};

int main()
{
    Crawler crawler;
    crawler.start("http://example.org");
    crawler.wait_and_stop();
    std::puts("crawler stopped");
    return 0;
}
