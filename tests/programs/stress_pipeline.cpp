// Four stages hand heap objects on through bounded queues with conditions; semaphores limit them, a latch starts and futures end them.
// Prints a checksum over all objects. The argument is how many there are.
// portent: args 120
// portent: threads 8
// portent: stdout 120 objects, checksum 7260, alive 0
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> alive{0};

struct Object {
    int number;
    std::string path;
    explicit Object(int n) : number(n) { alive.fetch_add(1, std::memory_order_relaxed); }
    ~Object() { alive.fetch_sub(1, std::memory_order_acq_rel); }
};

class Queue {
public:
    void put(std::shared_ptr<Object> object)
    {
        std::unique_lock held(lock);
        room.wait(held, [this] { return objects.size() < 3; });
        objects.push_back(std::move(object));
        filled.notify_one();
    }
    // Null once the queue is closed and empty.
    std::shared_ptr<Object> take()
    {
        std::unique_lock held(lock);
        filled.wait(held, [this] { return closed || !objects.empty(); });
        if (objects.empty())
            return nullptr;
        auto object = std::move(objects.front());
        objects.pop_front();
        room.notify_one();
        return object;
    }
    void close()
    {
        std::lock_guard held(lock);
        closed = true;
        filled.notify_all();
    }

private:
    std::mutex lock;
    std::condition_variable room, filled;
    std::deque<std::shared_ptr<Object>> objects;
    bool closed = false;
};

int main(int argc, char **argv)
{
    const int count = argc > 1 ? std::atoi(argv[1]) : 120;
    Queue queues[3];
    std::latch start(6);
    std::counting_semaphore<4> slots(4);
    std::atomic<int> open[2] = {2, 2};
    std::vector<std::thread> threads;
    for (int stage = 0; stage < 2; stage++)
        for (int worker = 0; worker < 2; worker++)
            threads.emplace_back([&, stage] {
                start.arrive_and_wait();
                while (auto object = queues[stage].take()) {
                    slots.acquire();
                    object->path += static_cast<char>('a' + stage);
                    slots.release();
                    queues[stage + 1].put(std::move(object));
                }
                if (--open[stage] == 0)
                    queues[stage + 1].close();
            });
    auto sink = [&] {
        start.arrive_and_wait();
        long sum = 0;
        while (auto object = queues[2].take()) {
            assert(object->path == "ab");
            sum += object->number;
        }
        return sum;
    };
    auto first = std::async(std::launch::async, sink), second = std::async(std::launch::async, sink);
    std::thread source([&] {
        start.wait();
        for (int i = 1; i <= count; i++)
            queues[0].put(std::make_shared<Object>(i));
        queues[0].close();
    });
    source.join();
    for (auto &thread : threads)
        thread.join();
    long sum = first.get() + second.get();
    std::printf("%d objects, checksum %ld, alive %d\n", count, sum, alive.load());
}
