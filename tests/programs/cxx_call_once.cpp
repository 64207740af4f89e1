// call_once by several threads; an initialiser that throws is tried again by the next caller.
// Prints how often initialisers ran.
// portent: threads 7
// portent: stdout once 1, thrown 2, then done 1
#include <cassert>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static std::once_flag once, throwing;
static int ran, tried, done;

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([] {
            std::call_once(once, [] { ran++; });
            assert(ran == 1);
        });
    for (auto &thread : threads)
        thread.join();
    threads.clear();
    std::mutex lock;
    int thrown = 0;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&] {
            try {
                std::call_once(throwing, [] {
                    if (++tried < 3)
                        throw std::runtime_error("not yet");
                    done++;
                });
            } catch (const std::runtime_error &) {
                std::lock_guard held(lock);
                thrown++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("once %d, thrown %d, then done %d\n", ran, thrown, done);
}
