// One thread computes the routes, the forwarder uses them as soon as they are there.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

struct Route {
    unsigned prefix = 0;
    int port = -1;
};

class Router {
public:
    void compute()
    {
        for (std::size_t i = 0; i < routes_.size(); ++i) {
            routes_[i].prefix = static_cast<unsigned>(0x0a00 + i); // BUG
            routes_[i].port = static_cast<int>(i % 2); // BUG
        }
        ready_.store(true, std::memory_order_relaxed); // BUG
    }

    bool ready() const
    {
        return ready_.load(std::memory_order_relaxed); // BUG
    }

    // Only when ready.
    int forward(unsigned address) const
    {
        for (const Route &route : routes_)
            if (route.prefix == address >> 16) // BUG
                return route.port; // BUG
        return -1;
    }

private:
    std::array<Route, 3> routes_;
    std::atomic<bool> ready_{false};
};

static void forwarder(const Router &router, int *port)
{
    // There is nothing useful to do without routes; look again now and then.
    while (!router.ready())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    *port = router.forward(0x0a010001);
}

int main()
{
    Router router;
    int port = -1;
    std::thread reader(forwarder, std::cref(router), &port);
    std::thread writer(&Router::compute, &router);
    writer.join();
    reader.join();
    std::printf("10.1.0.1 goes to port %d\n", port);
    return port == 1 ? 0 : 1;
}
