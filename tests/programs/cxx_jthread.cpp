// std::jthread stops and joins by itself; stop tokens, stop callbacks, and a wait that a stop request interrupts.
// Prints how the threads came to an end.
// portent: threads 3
// portent: stdout callback 1, polled 1, interrupted 1
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <thread>

int main()
{
    std::atomic<int> callback{0}, polled{0}, interrupted{0};
    {
        std::mutex lock;
        std::condition_variable_any never;
        std::jthread polls([&](std::stop_token stop) {
            std::stop_callback called(stop, [&] { callback++; });
            while (!stop.stop_requested())
                std::this_thread::yield();
            polled++;
        });
        std::jthread waits([&](std::stop_token stop) {
            std::unique_lock held(lock);
            if (!never.wait(held, stop, [] { return false; }))
                interrupted++;
        });
        waits.request_stop();
    }
    std::printf("callback %d, polled %d, interrupted %d\n", callback.load(), polled.load(), interrupted.load());
}
