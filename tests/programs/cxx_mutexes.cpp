// The mutex family: mutex, recursive_mutex, timed_mutex, recursive_timed_mutex, with every kind of guard and with scoped_lock.
// Prints the exact sums.
// portent: threads 4
// portent: ops busy 3+
// portent: stdout 300 300 300, tries failed as they should
#include <cassert>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex plain;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::recursive_timed_mutex both;
static int under_plain, under_recursive, under_all;

static void work()
{
    for (int i = 0; i < 100; i++) {
        {
            std::lock_guard guard(plain);
            under_plain++;
        }
        {
            std::unique_lock first(recursive);
            std::unique_lock second(recursive, std::defer_lock);
            second.lock();
            under_recursive++;
        }
        {
            std::scoped_lock all(plain, timed, both);
            under_all++;
        }
    }
}

int main()
{
    using namespace std::chrono_literals;
    plain.lock();
    timed.lock();
    both.lock();
    std::thread([] {
        assert(!plain.try_lock());
        assert(!timed.try_lock_for(5ms));
        assert(!both.try_lock_until(std::chrono::steady_clock::now() + 5ms));
    }).join();
    plain.unlock();
    timed.unlock();
    both.unlock();
    assert(timed.try_lock_for(10s) && both.try_lock());
    timed.unlock();
    both.unlock();
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back(work);
    work();
    for (auto &thread : threads)
        thread.join();
    std::printf("%d %d %d, tries failed as they should\n", under_plain, under_recursive, under_all);
}
