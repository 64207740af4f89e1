// Command history of a shell: one thread appends and trims, another exports it.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class History {
public:
    explicit History(std::size_t limit) : limit_(limit) {}

    void add(std::string line)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        lines_.push_back(std::move(line));
    }

    // Forgets all but the newest lines.
    void trim()
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (lines_.size() > limit_)
            lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(limit_));
    }

    std::size_t size() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return lines_.size();
    }

    std::string line(std::size_t index) const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return lines_.at(index);
    }

    std::vector<std::string> all() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return lines_;
    }

private:
    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

static std::size_t export_to(std::string &out, const History &history)
{
    std::size_t exported = 0;
    for (const auto &line : history.all()) {
        out += line + "\n";
        ++exported;
    }
    return exported;
}

int main()
{
    History history(2);
    for (const char *command : {"ls", "cd src", "make"})
        history.add(command);

    std::string saved;
    std::thread exporter([&] { export_to(saved, history); });
    std::thread shell([&] {
        history.add("make test");
        history.trim();
    });
    exporter.join();
    shell.join();

    const bool good = !saved.empty() && history.size() == 2 && history.line(1) == "make test";
    std::puts(good ? "history saved" : "history lost");
    return good ? 0 : 1;
}
