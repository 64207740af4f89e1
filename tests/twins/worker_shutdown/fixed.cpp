// A background writer with a queue; stop() lets it finish what is queued.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

class BackgroundWriter {
public:
    BackgroundWriter() : thread_([this] { run(); }) {}
    ~BackgroundWriter() { stop(); }

    void write(std::string line)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            lines_.push_back(std::move(line));
        }
        wake_.notify_one();
    }

    void stop()
    {
        if (!thread_.joinable())
            return;
        {
            // Under the mutex, or the writer could miss it on its way to sleep.
            std::lock_guard<std::mutex> guard(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }

    std::size_t bytes() const { return bytes_; }

private:
    void run()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            while (lines_.empty() && !stopping_)
                wake_.wait(lock);
            if (lines_.empty())
                return;
            std::string line = std::move(lines_.front());
            lines_.pop_front();
            lock.unlock();
            bytes_ += line.size() + 1;
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::string> lines_;
    std::atomic<bool> stopping_{false};
    std::size_t bytes_ = 0; // the writer's, until it is joined
    std::thread thread_;
};

int main()
{
    BackgroundWriter writer;
    writer.write("first line");
    writer.write("second line");
    writer.stop();
    std::printf("%zu bytes written\n", writer.bytes());
    return writer.bytes() == 23 ? 0 : 1;
}
