// A worker runs packaged tasks; the number of tasks is counted by everybody.
// portent: object pool->ran in main()
#include <future>
#include <memory>
#include <queue>
#include <mutex>
#include <thread>

struct Pool {
    std::mutex mutex;
    std::queue<std::packaged_task<int()>> tasks;
    int ran = 0;

    std::future<int> submit(int n) {
        std::packaged_task<int()> task([n] { return n * n; });
        auto result = task.get_future();
        std::lock_guard<std::mutex> guard(mutex);
        tasks.push(std::move(task));
        return result;
    }
    void run_one() {
        std::packaged_task<int()> task;
        {
            std::lock_guard<std::mutex> guard(mutex);
            if (tasks.empty()) return;
            task = std::move(tasks.front());
            tasks.pop();
        }
        task();
        ran++;
    }
};

int main() {
    auto pool = std::make_shared<Pool>();
    auto a = pool->submit(3), b = pool->submit(4);
    std::thread first([pool] { pool->run_one(); }), second([pool] { pool->run_one(); });
    int sum = a.get() + b.get();
    first.join();
    second.join();
    return sum == 25 ? 0 : 1;
}
