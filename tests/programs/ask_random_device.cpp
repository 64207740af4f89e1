// std::random_device decides what two threads do, and std::chrono clocks are asked.
// Prints numbers that differ from run to run; a replay prints the same again.
// portent: threads 3
// portent: stdout * * *
#include <chrono>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>

static std::mutex lock;
static int steps;

static void walk()
{
    std::random_device device;
    for (unsigned i = 0, count = device() % 64; i < count; i++) {
        std::lock_guard held(lock);
        steps++;
    }
}

int main()
{
    std::thread a(walk), b(walk);
    a.join();
    b.join();
    std::mt19937 generator(std::random_device{}());
    std::printf("%d %u %lld\n", steps, static_cast<unsigned>(generator()),
                static_cast<long long>(std::chrono::system_clock::now().time_since_epoch().count()));
}
