// std::thread with lambdas, members, moved and referenced arguments; ids; yield; detach; vectors of threads.
// Prints the results.
// portent: threads 8
// portent: ops fork 7
// portent: ops join 6
// portent: stdout sum 10, member 7, moved 3, detached 1
#include <atomic>
#include <cassert>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

struct Machine {
    int state = 2;
    void run(int by) { state += by; }
};

int main()
{
    std::vector<int> results(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&results, i] { results[i] = i + 1; });
    for (auto &thread : threads) {
        assert(thread.joinable() && thread.get_id() != std::this_thread::get_id());
        thread.join();
        assert(!thread.joinable());
    }
    Machine machine;
    std::thread member(&Machine::run, &machine, 5);
    auto moved = std::make_unique<int>(2);
    int got = 0;
    std::thread moving([](std::unique_ptr<int> number, int &out) { out = *number + 1; }, std::move(moved), std::ref(got));
    std::thread other = std::move(moving);
    member.join();
    other.join();
    std::atomic<int> detached{0};
    std::thread([&detached] { detached = 1; }).detach();
    while (!detached)
        std::this_thread::yield();
    std::printf("sum %d, member %d, moved %d, detached %d\n", std::accumulate(results.begin(), results.end(), 0), machine.state, got,
                detached.load());
}
