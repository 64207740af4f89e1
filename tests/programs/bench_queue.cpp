// Bench: two producers and two consumers share a small bounded queue; nearly everything is condition variables and switches.
// Prints the sum. The argument is how many items each producer makes.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable room, filled;
static long ring[8];
static unsigned head, length;
static long sum;

int main(int argc, char **argv)
{
    const long count = argc > 1 ? std::atol(argv[1]) : 300000;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([count] {
            for (long item = 0; item < count; item++) {
                std::unique_lock held(lock);
                room.wait(held, [] { return length < 8; });
                ring[(head + length++) % 8] = item;
                filled.notify_one();
            }
        });
    for (int i = 0; i < 2; i++)
        threads.emplace_back([count] {
            for (long item = 0; item < count; item++) {
                std::unique_lock held(lock);
                filled.wait(held, [] { return length > 0; });
                sum += ring[head];
                head = (head + 1) % 8;
                length--;
                room.notify_one();
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("sum %ld\n", sum);
}
