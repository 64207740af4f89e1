// An atomic shared_ptr is published, but what it points to is changed afterwards.
// portent: object config->timeout in * | current*timeout | Config::timeout of Config from *
#include <atomic>
#include <memory>
#include <string>
#include <thread>

struct Config {
    std::string name;
    int timeout = 0;
};

static std::atomic<std::shared_ptr<Config>> current;

int main() {
    current.store(std::make_shared<Config>(Config{"first", 1}));
    std::thread reader([] {
        auto config = current.load();
        if (config->timeout > 5) std::exit(3);
    });
    auto config = current.load();
    config->timeout = 2;
    reader.join();
}
