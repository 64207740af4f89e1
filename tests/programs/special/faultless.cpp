// A little of everything in the standard library that allocates, frees, throws and ends: no faults.
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <dirent.h>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

struct alignas(64) Wide {
    int values[16] = {};
};

struct Node : std::enable_shared_from_this<Node> {
    std::mutex lock;
    std::condition_variable changed;
    std::weak_ptr<Node> parent;
    std::vector<std::shared_ptr<Node>> children;
    virtual ~Node() = default;
};

struct Pooled {
    int value = 1;
    static void *operator new(std::size_t size)
    {
        return std::malloc(size);
    }
    static void operator delete(void *block)
    {
        std::free(block);
    }
};

// What the C library calls back allocates in its own right.
static std::vector<std::string> *names = nullptr;

static int keeps(const dirent *entry)
{
    if (!names)
        names = new std::vector<std::string>;
    names->push_back(entry->d_name + std::string(50, '-'));
    return 0;
}

static int counted(const std::string &text)
{
    static const std::regex words(R"((\w+)\s*=\s*(\d+))");
    std::smatch match;
    return std::regex_search(text, match, words) ? std::stoi(match[2]) : 0;
}

int main()
{
    std::map<std::string, std::vector<int>> table;
    std::mutex lock;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 20; k++) {
                std::ostringstream text;
                text << "key " << k % 5 << " = " << i * 10 + k;
                int value = counted(text.str());
                std::lock_guard guard(lock);
                table[text.str()].push_back(value);
            }
        });
    for (auto &thread : threads)
        thread.join();

    auto root = std::make_shared<Node>();
    for (int i = 0; i < 4; i++) {
        auto child = std::make_shared<Node>();
        child->parent = root;
        root->children.push_back(child);
    }
    std::thread reader([kept = root] {
        std::unique_lock guard(kept->lock);
        kept->changed.wait_for(guard, std::chrono::milliseconds(1));
    });
    root->changed.notify_all();
    root.reset();
    reader.join();

    std::promise<std::string> promise;
    auto future = promise.get_future();
    std::thread setter([done = std::move(promise)]() mutable { done.set_value(std::string(100, 'x')); });
    std::size_t size = future.get().size();
    setter.join();
    auto failing = std::async(std::launch::async, [] { return std::vector<int>(3).at(7); });
    try {
        failing.get();
    } catch (const std::out_of_range &) {
        size++;
    }
    try {
        throw std::runtime_error(std::string(200, 'y'));
    } catch (const std::exception &error) {
        size += std::string(error.what()).size();
    }
    {
        auto wide = std::make_unique<Wide>();
        auto wides = std::make_unique<Wide[]>(3);
        wide->values[0] = wides[2].values[1] = 1;
        delete new Pooled;
        int *nothrow = new (std::nothrow) int[5]();
        delete[] nothrow;
        std::list<std::deque<int>> deques(3, std::deque<int>(100, 1));
        std::unordered_map<int, std::optional<std::string>> found;
        for (int i = 0; i < 100; i++)
            found[i] = std::string(i, 'z');
        std::variant<int, std::string> either = std::string(50, 'w');
        either = 1;
        std::function<int()> function = [found] { return int(found.size()); };
        size += function();
        std::shared_mutex shared;
        std::shared_lock reading(shared);
    }
    dirent **entries;
    scandir("/proc/self", &entries, keeps, alphasort);
    std::free(entries);
    delete names;
    std::ifstream file("/proc/self/status");
    std::string line;
    while (std::getline(file, line))
        size += line.empty();
    std::cout << table.size() << " keys, " << size << std::endl;
}
