// An indexer that works in the background and leaves statistics when it ends.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Indexer {
public:
    void start(std::vector<std::string> files)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        files_ = std::move(files);
        thread_ = std::thread([this] { run(); });
    }

    // To be asked by whoever has called start().
    bool all_indexed() const { return indexed_.load() == files_.size(); }

    std::size_t stop()
    {
        std::thread finished;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            finished.swap(thread_);
        }
        if (finished.joinable())
            finished.join();
        std::lock_guard<std::mutex> guard(mutex_);
        return words_;
    }

private:
    void run()
    {
        std::size_t words = 0;
        for (const auto &file : files_) {
            words += 1 + static_cast<std::size_t>(file.size() / 4);
            indexed_.fetch_add(1);
        }
        std::lock_guard<std::mutex> guard(mutex_);
        words_ = words;
    }

    std::mutex mutex_;
    std::vector<std::string> files_; // does not change while the thread runs
    std::atomic<std::size_t> indexed_{0};
    std::size_t words_ = 0;
    std::thread thread_;
};

int main()
{
    Indexer indexer;
    indexer.start({"README", "main.cpp", "util.cpp"});

    do
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    while (!indexer.all_indexed());

    const std::size_t words = indexer.stop();
    std::printf("%zu words\n", words);
    return words == 8 ? 0 : 1;
}
