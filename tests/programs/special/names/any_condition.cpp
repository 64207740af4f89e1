// A condition_variable_any with a shared_mutex; the count is changed outside of the lock.
// portent: object gate.waiting in main()
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

class Gate {
public:
    void enter() {
        waiting++;
        std::shared_lock lock(mutex_);
        opened_.wait(lock, [this] { return open_; });
    }
    void open() {
        {
            std::unique_lock lock(mutex_);
            open_ = true;
        }
        opened_.notify_all();
    }
    int waiting = 0;

private:
    std::shared_mutex mutex_;
    std::condition_variable_any opened_;
    bool open_ = false;
};

int main() {
    Gate gate;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) threads.emplace_back([&gate] { gate.enter(); });
    gate.open();
    for (auto& thread : threads) thread.join();
    return gate.waiting > 2;
}
