// An exception goes from a thread to main through an exception_ptr that nothing protects.
// portent: object failure*
#include <exception>
#include <stdexcept>
#include <thread>

static std::exception_ptr failure;

static void load(int part) {
    try {
        if (part > 0) throw std::runtime_error("no such part");
    } catch (...) {
        failure = std::current_exception();
    }
}

int main() {
    std::thread first(load, 1), second(load, 2);
    first.join();
    second.join();
    try {
        std::rethrow_exception(failure);
    } catch (const std::runtime_error&) {
        return 0;
    }
}
