// Lines go to a shared string buffer; a thread_local counter is read by its owner only, a static member by all.
// portent: object Logger::total
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

class Logger {
public:
    void log(const std::string& line)
    {
        lines_.push_back(line);
        if (++total > limit)
            lines_.pop_front();
    }
    static int total;
    static constexpr int limit = 3;

private:
    std::deque<std::string> lines_;
};

int Logger::total;
static thread_local int own;

static void work(Logger& logger, int id)
{
    for (int i = 0; i < 2; i++) {
        own++;
        std::ostringstream text;
        text << "worker " << id << " step " << own;
        logger.log(text.str());
    }
}

int main()
{
    Logger logger;
    std::vector<std::thread> threads;
    for (int id = 0; id < 2; id++)
        threads.emplace_back(work, std::ref(logger), id);
    for (auto& thread : threads)
        thread.join();
    return 0;
}
