// Results of std::async tasks go into one map without a lock.
// portent: object prices*
#include <future>
#include <map>
#include <string>

std::map<std::string, int> prices;

static int fetch(const std::string& symbol, int price) {
    prices[symbol] = price;
    return price;
}

int main() {
    auto a = std::async(std::launch::async, fetch, "AAA", 3);
    auto b = std::async(std::launch::async, fetch, "BBB", 4);
    return a.get() + b.get() == 7 ? 0 : 1;
}
