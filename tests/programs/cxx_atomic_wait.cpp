// C++20 atomic waiting: wait, notify_one and notify_all on an int, a byte and a flag, each sure to block for a while.
// Prints the rounds.
// portent: threads 4
// portent: stdout 50 rounds, 2 bytes, flag seen
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

int main()
{
    std::atomic<int> turn{0};
    std::thread other([&] {
        for (int i = 0; i < 50; i += 2) {
            turn.wait(i);
            turn = i + 2;
            turn.notify_one();
        }
    });
    for (int i = 0; i < 50; i += 2) {
        turn = i + 1;
        turn.notify_one();
        turn.wait(i + 1);
    }
    other.join();
    std::atomic<std::uint8_t> byte{0};
    std::atomic<int> bytes{0};
    std::atomic_flag flag = ATOMIC_FLAG_INIT;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            byte.wait(0, std::memory_order_acquire);
            bytes++;
            flag.test_and_set();
            flag.notify_all();
        });
    byte.store(1, std::memory_order_release);
    byte.notify_all();
    flag.wait(false);
    for (auto &thread : threads)
        thread.join();
    std::printf("%d rounds, %d bytes, flag seen\n", turn.load(), bytes.load());
}
