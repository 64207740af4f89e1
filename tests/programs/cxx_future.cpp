// promise, future, shared_future, packaged_task and async, with values, exceptions and time-outs across threads.
// Prints what came through.
// portent: threads 7
// portent: stdout promised 42, shared 84, task 5, async 9, thrown bad luck, timed out, at exit 7
#include <cassert>
#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <thread>

int main()
{
    using namespace std::chrono_literals;
    std::promise<int> promise;
    std::shared_future<int> shared = promise.get_future().share();
    std::future<int> doubled = std::async(std::launch::async, [shared] { return shared.get() * 2; });
    assert(shared.wait_for(5ms) == std::future_status::timeout);
    std::thread keeps([&promise] { promise.set_value(42); });
    std::packaged_task<int(int, int)> task([](int a, int b) { return a + b; });
    std::future<int> added = task.get_future();
    std::thread runs(std::move(task), 2, 3);
    std::future<int> lazy = std::async(std::launch::deferred, [] { return 9; });
    std::future<void> throws = std::async(std::launch::async, [] { throw std::runtime_error("bad luck"); });
    std::printf("promised %d, shared %d, task %d, async %d, ", shared.get(), doubled.get(), added.get(), lazy.get());
    try {
        throws.get();
    } catch (const std::runtime_error &error) {
        std::printf("thrown %s, ", error.what());
    }
    keeps.join();
    runs.join();
    std::promise<void> never;
    assert(never.get_future().wait_for(5ms) == std::future_status::timeout);
    std::printf("timed out, ");
    std::promise<int> late;
    auto at_exit = late.get_future();
    std::thread([&late] { late.set_value_at_thread_exit(7); }).join();
    std::printf("at exit %d\n", at_exit.get());
    std::async(std::launch::async, [] {}).wait();
}
