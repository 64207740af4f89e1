// Threads wait for each other at a latch, a barrier and a semaphore, and still add without a lock.
// portent: object total in main()
#include <barrier>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

int main() {
    long total = 0;
    std::latch started(2);
    std::barrier phase(2);
    std::counting_semaphore<2> slots(2);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&, i] {
            started.arrive_and_wait();
            slots.acquire();
            total += i;
            slots.release();
            phase.arrive_and_wait();
        });
    }
}
