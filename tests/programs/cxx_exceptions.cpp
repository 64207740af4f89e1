// Exceptions unwind through many calls and locks in two threads at once, are carried to main and thrown again there.
// Prints how many were caught; call stacks are right afterwards.
// portent: threads 3
// portent: stdout caught 40, carried: deep 0
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

static std::mutex lock;
static int caught;

static int bottom(int depth)
{
    std::lock_guard held(lock);
    if (depth == 0)
        throw std::runtime_error("deep " + std::to_string(depth));
    return depth;
}

static int outer(int depth)
{
    if (depth > 0)
        return outer(depth - 1) + 1;
    return bottom(depth);
}

static void work()
{
    for (int i = 0; i < 20; i++)
        try {
            outer(i);
        } catch (const std::exception &) {
            std::lock_guard held(lock);
            caught++;
        }
}

int main()
{
    std::exception_ptr carried;
    std::thread a(work), b([&] {
        work();
        try {
            outer(30);
        } catch (...) {
            carried = std::current_exception();
        }
    });
    a.join();
    b.join();
    try {
        std::rethrow_exception(carried);
    } catch (const std::exception &error) {
        std::printf("caught %d, carried: %s\n", caught, error.what());
    }
}
