// operator new and delete in all forms, containers and shared pointers that threads hand to each other.
// Prints the sums; the last owner of each object destroys it, once.
// portent: threads 4
// portent: stdout sum 14850, destroyed 100, words 300
#include <atomic>
#include <cassert>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> destroyed{0};

struct Item {
    int number;
    explicit Item(int n) : number(n) {}
    ~Item() { destroyed++; }
};

struct alignas(64) Wide {
    char bytes[64];
};

int main()
{
    std::mutex lock;
    std::map<std::string, int> words;
    long sum = 0;
    {
        std::vector<std::shared_ptr<Item>> items;
        for (int i = 0; i < 100; i++)
            items.push_back(std::make_shared<Item>(i));
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; t++)
            threads.emplace_back([&, items, t] {
                for (auto &item : items) {
                    std::string word = "a rather long word that is on the heap " + std::to_string(item->number);
                    std::lock_guard held(lock);
                    sum += item->number;
                    words[word + char('a' + t)]++;
                }
                auto *array = new int[100]();
                auto *wide = new Wide[3];
                assert(reinterpret_cast<std::uintptr_t>(wide) % 64 == 0 && array[99] == 0);
                delete[] array;
                delete[] wide;
                void *raw = ::operator new(100, std::nothrow);
                ::operator delete(raw, std::nothrow);
            });
        items.clear();
        for (auto &thread : threads)
            thread.join();
    }
    std::printf("sum %ld, destroyed %d, words %zu\n", sum, destroyed.load(), words.size());
}
