// condition_variable and condition_variable_any: predicates, notify_one, notify_all, wait_for that times out and that does not.
// Prints the items and the time-outs.
// portent: threads 4
// portent: stdout 60 items, sum 1830, timed out 2, in time 1
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

int main()
{
    using namespace std::chrono_literals;
    std::mutex lock;
    std::condition_variable filled;
    std::deque<int> queue;
    bool finished = false;
    int items = 0, sum = 0;
    std::vector<std::thread> consumers;
    for (int i = 0; i < 2; i++)
        consumers.emplace_back([&] {
            std::unique_lock held(lock);
            for (;;) {
                filled.wait(held, [&] { return finished || !queue.empty(); });
                if (queue.empty())
                    return;
                items++;
                sum += queue.front();
                queue.pop_front();
            }
        });
    for (int i = 1; i <= 60; i++) {
        std::lock_guard held(lock);
        queue.push_back(i);
        filled.notify_one();
    }
    {
        std::lock_guard held(lock);
        finished = true;
    }
    filled.notify_all();
    for (auto &consumer : consumers)
        consumer.join();

    int timed_out = 0, in_time = 0;
    std::condition_variable_any any;
    std::shared_mutex shared;
    bool ready = false;
    {
        std::unique_lock held(lock);
        timed_out += !filled.wait_for(held, 10ms, [] { return false; });
        std::shared_lock reading(shared);
        timed_out += !any.wait_until(reading, std::chrono::system_clock::now() + 10ms, [] { return false; });
    }
    std::thread notifies([&] {
        std::lock_guard held(shared);
        ready = true;
        any.notify_all();
    });
    {
        std::shared_lock reading(shared);
        in_time += any.wait_for(reading, 20s, [&] { return ready; });
    }
    notifies.join();
    std::printf("%d items, sum %d, timed out %d, in time %d\n", items, sum, timed_out, in_time);
}
