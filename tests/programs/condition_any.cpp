// A bounded queue over std::shared_mutex and std::condition_variable_any; two producers, one consumer, one that looks.
// Prints the sum of what was handed over.
// portent: threads 4
// portent: stdout 66
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <thread>

class Queue {
public:
    void push(int value)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        changed_.wait(guard, [this] { return items_.size() < 2; });
        items_.push_back(value);
        changed_.notify_all();
    }
    int pop()
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !items_.empty(); });
        int value = items_.front();
        items_.pop_front();
        changed_.notify_all();
        return value;
    }
    std::size_t size()
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        return items_.size();
    }

private:
    std::shared_mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<int> items_;
};
int main()
{
    Queue queue;
    int sum = 0;
    std::thread one([&] { for (int i = 1; i <= 3; i++) queue.push(i); });
    std::thread two([&] { for (int i = 1; i <= 3; i++) queue.push(10 * i); });
    std::thread looks([&] { if (queue.size() > 2) std::puts("too long"); });
    for (int i = 0; i < 6; i++)
        sum += queue.pop();
    one.join();
    two.join();
    looks.join();
    std::printf("%d\n", sum);
    return sum == 66 ? 0 : 1;
}
