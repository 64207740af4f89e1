// shared_mutex and shared_timed_mutex: readers together, writers alone, tries and time-outs.
// Prints the table's size; no reader saw it half done.
// portent: threads 6
// portent: ops busys 1+
// portent: stdout 40 entries, never half done
#include <cassert>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::shared_mutex lock;
static std::shared_timed_mutex timed;
static std::map<int, int> table;
static int size;

int main()
{
    using namespace std::chrono_literals;
    lock.lock();
    timed.lock();
    std::thread([] {
        assert(!lock.try_lock_shared() && !lock.try_lock());
        assert(!timed.try_lock_shared_for(5ms) && !timed.try_lock_for(5ms));
    }).join();
    timed.unlock();
    lock.unlock();
    assert(timed.try_lock_shared_for(10s));
    timed.unlock_shared();

    std::vector<std::thread> threads;
    for (int writer = 0; writer < 2; writer++)
        threads.emplace_back([writer] {
            for (int i = 0; i < 20; i++) {
                std::unique_lock guard(lock);
                table[writer * 100 + i] = i;
                size++;
            }
        });
    for (int reader = 0; reader < 2; reader++)
        threads.emplace_back([] {
            for (int i = 0; i < 20; i++) {
                std::shared_lock guard(lock);
                assert(static_cast<int>(table.size()) == size);
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%zu entries, never half done\n", table.size());
}
