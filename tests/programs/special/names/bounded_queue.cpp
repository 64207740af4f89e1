// A bounded queue: `if` where `while` belongs, with notify_one for two kinds of waiters.
// portent: object jobs.items_ (*) in main()
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>

template <typename T>
class BoundedQueue {
public:
    explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}
    void put(T item)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        while (items_.size() == capacity_)
            changed_.wait(lock);
        items_.push(std::move(item));
        changed_.notify_all();
    }
    T take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        if (items_.empty())
            changed_.wait(lock);
        assert(!items_.empty());
        T item = std::move(items_.front());
        items_.pop();
        changed_.notify_all();
        return item;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::queue<T> items_;
    std::size_t capacity_;
};

struct Job {
    int id;
};

int main()
{
    BoundedQueue<Job> jobs(1);
    std::thread first([&] { jobs.take(); });
    std::thread second([&] { jobs.take(); });
    jobs.put({1});
    jobs.put({2});
    first.join();
    second.join();
    return 0;
}
