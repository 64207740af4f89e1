// One of the many files of a large program, for the bench `large`: much debug information, little to do. The bench gives
// each copy a number in place of 0000.
#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
namespace unit_0000 {
struct Item { std::string name; long amount = 0; std::vector<int> parts; bool operator<(const Item& o) const { return name < o.name; } };
struct Store {
  std::map<std::string, Item> items;
  std::unordered_map<std::string, std::shared_ptr<Item>> index;
  std::deque<Item> queue;
  std::set<Item> sorted;
  std::mutex lock;
  long total = 0;
};
Store store;
static long hits = 0;
std::variant<int, std::string, Item> last;
void add(const std::string& name, long n) {
  static int calls = 0;
  calls++;
  Item item{name, n, {1, 2, 3}};
  { std::lock_guard<std::mutex> g(store.lock);
    store.items[name] = item;
    store.index.emplace(name, std::make_shared<Item>(item));
    store.queue.push_back(item);
    store.sorted.insert(item);
    last = item;
  }
  store.total += n;
  hits++;
}
bool matches(const std::string& text) {
  static const std::regex pattern("([a-z]+)-([0-9]+)", std::regex::extended);
  std::smatch found;
  return std::regex_match(text, found, pattern);
}
long sum() {
  std::function<long(const Item&)> f = [](const Item& i) { return i.amount; };
  long s = 0;
  for (auto& [k, v] : store.items) s += f(v);
  std::sort(store.queue.begin(), store.queue.end(), [](const Item& a, const Item& b) { return a.amount < b.amount; });
  std::ostringstream out;
  out << s;
  std::optional<Item> best;
  if (!store.queue.empty()) best = store.queue.back();
  auto later = std::async(std::launch::deferred, [&] { return best ? best->amount : 0L; });
  return s + later.get();
}
}
long unit_0000_run(int n) {
  std::thread a([=] { unit_0000::add("a-1", n); });
  std::thread b([=] { unit_0000::add("b-2", n); });
  a.join(); b.join();
  return unit_0000::sum();
}
