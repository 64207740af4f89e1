// An event loop in a thread of its own. Posting a task wakes it through a pipe,
// with at most one byte in flight.
#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

class EventLoop {
public:
    EventLoop()
    {
        if (pipe(wake_) != 0)
            throw std::bad_alloc();
        thread_ = std::thread([this] { run(); });
    }

    ~EventLoop()
    {
        thread_.join();
        close(wake_[0]);
        close(wake_[1]);
    }

    void post(std::function<void()> task)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            tasks_.push_back(std::move(task));
        }
        if (!wake_pending_.exchange(true) && write(wake_[1], "!", 1) != 1)
            std::perror("event loop");
    }

    // Like any task: everything posted before is done first.
    void quit()
    {
        post([this] { quit_ = true; });
    }

private:
    void run()
    {
        while (!quit_) {
            char byte;
            if (read(wake_[0], &byte, 1) != 1)
                return;
            // Before looking at the queue: who posts from here on wakes us again.
            wake_pending_.store(false);
            for (auto &task : take())
                task();
        }
    }

    std::vector<std::function<void()>> take()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return std::move(tasks_);
    }

    int wake_[2];
    std::atomic<bool> wake_pending_{false};
    bool quit_ = false; // the loop's own
    std::mutex mutex_;
    std::vector<std::function<void()>> tasks_;
    std::thread thread_;
};

int main()
{
    int done = 0;
    {
        EventLoop loop;
        loop.post([&done] { ++done; });
        loop.post([&done] { ++done; });
        loop.quit();
    }
    std::printf("%d tasks done\n", done);
    return done == 2 ? 0 : 1;
}
