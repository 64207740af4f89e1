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

static std::string download(const std::string &mirror, const std::string &file)
{
    return file + " (" + std::to_string(mirror.size() + file.size()) + " bytes)";
}

int main()
{
    FirstAnswer answer;
    const std::string file = "release.tar";

    std::vector<std::thread> threads;
    for (const char *mirror : {"eu.mirror.example", "us.mirror.example"})
        threads.emplace_back([&answer, &file, mirror] { answer.offer(mirror, download(mirror, file)); }); // BUG

    const std::string text = answer.get();
    for (auto &thread : threads)
        thread.join();

    const bool good = text.find(".mirror.example: release.tar (28 bytes)") != std::string::npos;
    std::puts(good ? "downloaded" : "broken download");
    return good ? 0 : 1;
}
