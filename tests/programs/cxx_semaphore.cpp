// C++20 semaphores: a counting one as a pool, a binary one as a baton, with tries and a time-out.
// Prints the most that were inside at once.
// portent: threads 5
// portent: stdout within 2, passed 40, tries failed
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <semaphore>
#include <thread>
#include <vector>

int main()
{
    using namespace std::chrono_literals;
    std::counting_semaphore<4> pool(2);
    std::binary_semaphore baton(0);
    std::atomic<int> inside{0}, passed{0};
    assert(!baton.try_acquire() && !baton.try_acquire_for(5ms));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < 10; k++) {
                pool.acquire();
                assert(++inside <= 2);
                --inside;
                pool.release();
                passed++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::thread runner([&] {
        for (int i = 0; i < 5; i++)
            baton.acquire(), passed++;
    });
    for (int i = 0; i < 5; i++) {
        int before = passed;
        baton.release();
        while (passed == before)
            std::this_thread::yield();
        passed++;
    }
    runner.join();
    std::printf("within 2, passed %d, tries failed\n", passed.load());
}
