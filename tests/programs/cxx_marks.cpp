// A block from its declaration to the end of the scope, left by an exception too.
// Every begin has its end.
// portent: threads 2
// portent: ops begin 2
// portent: ops end 2
// portent: stdout caught
#include <cstdio>
#include <portent.h>
#include <stdexcept>
#include <thread>

static void careful(int times)
{
    portent::atomic_block block("careful");
    if (times > 1)
        throw std::runtime_error("too often");
}

int main()
{
    std::thread([] { careful(1); }).join();
    try {
        careful(2);
    } catch (const std::runtime_error &) {
        std::puts("caught");
    }
}
