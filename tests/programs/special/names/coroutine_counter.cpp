// A coroutine is resumed by two threads, one after the other, but its counter is also read by main.
// portent: object steps*
#include <coroutine>
#include <thread>

static int steps = 0;

struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};

static Task count() {
    for (int i = 0; i < 2; i++) {
        steps++;
        co_await std::suspend_always{};
    }
}

int main() {
    Task task = count();
    std::thread runner([&] { task.handle.resume(); });
    int seen = steps;
    runner.join();
    task.handle.destroy();
    return seen > 2;
}
