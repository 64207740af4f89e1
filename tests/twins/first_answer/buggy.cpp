// Asks two mirrors for the same file and takes whichever answers first.
#include <atomic>
#include <cstdio>
#include <future>
#include <string>
#include <thread>
#include <vector>

class FirstAnswer {
public:
    void offer(const std::string &mirror, const std::string &data)
    {
        if (answered_.load()) // BUG
            return;
        answered_.store(true); // BUG
        result_.set_value(mirror + ": " + data); // BUG
    }

    std::string get() { return result_.get_future().get(); }

private:
    std::atomic<bool> answered_{false};
    std::promise<std::string> result_;
};

// A server that has the files of a release.
class Mirror {
public:
    explicit Mirror(std::string host) : host_(std::move(host)) {}

    const std::string &host() const { return host_; }

    std::string download(const std::string &file) const
    {
        return file + " (" + std::to_string(host_.size() + file.size()) + " bytes)";
    }

private:
    const std::string host_;
};

int main()
{
    const std::vector<Mirror> mirrors{Mirror("eu.mirror.example"), Mirror("us.mirror.example")};
    const std::string file = "release.tar";
    FirstAnswer answer;

    std::vector<std::thread> threads;
    for (const Mirror &mirror : mirrors)
        threads.emplace_back([&answer, &file, &mirror] { answer.offer(mirror.host(), mirror.download(file)); }); // BUG

    const std::string text = answer.get();
    for (auto &thread : threads)
        thread.join();

    const bool good = text.find(".mirror.example: release.tar (28 bytes)") != std::string::npos;
    std::puts(good ? "downloaded" : "broken download");
    return good ? 0 : 1;
}
