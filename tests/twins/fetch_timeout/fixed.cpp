// Fetches an answer in the background; the caller waits for a limited time.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

class Fetch {
public:
    explicit Fetch(std::string url) : url_(std::move(url)), thread_([this] { run(); }) {}
    ~Fetch() { thread_.join(); }

    // The answer, or what to show instead of it.
    std::string answer(std::chrono::milliseconds limit)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        if (!arrived_.wait_for(lock, limit, [this] { return answer_.has_value(); }))
            return "still loading";
        return answer_.value();
    }

private:
    void run()
    {
        std::string body;
        for (char c : url_)
            body += static_cast<char>(c == '/' ? '.' : c);

        std::lock_guard<std::mutex> guard(mutex_);
        answer_ = std::move(body);
        arrived_.notify_one();
    }

    const std::string url_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::optional<std::string> answer_;
    std::thread thread_;
};

// What the window shows of a page: its first line, and that not too long.
static std::string headline(const std::string &text)
{
    const std::size_t most = 40;
    const std::string line = text.substr(0, text.find('\n'));
    return line.size() <= most ? line : line.substr(0, most - 3) + "...";
}

int main()
{
    Fetch news("example.org/news");
    const std::string text = news.answer(std::chrono::milliseconds(400));
    std::fprintf(stderr, "%s\n", headline(text).c_str());
    const bool good = text == "example.org.news" || text == "still loading";
    std::puts(good ? "page shown" : "garbage shown");
    return good ? 0 : 1;
}
