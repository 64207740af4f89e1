// An exception leaves a thread's function and nobody catches it.
// The program dies by SIGABRT, by way of std::terminate, which says what was thrown.
// portent: signal ABRT
// portent: threads 2
// portent: stderr what():  out of luck
#include <stdexcept>
#include <thread>

int main()
{
    std::thread thread([] { throw std::runtime_error("out of luck"); });
    thread.join();
}
