// Stock of a web shop, with accessors that are all thread-safe.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

class Item {
public:
    Item(std::string name, int stock) : name_(std::move(name)), stock_(stock) {}

    Item(const Item &) = delete;
    Item &operator=(const Item &) = delete;

    const std::string &name() const { return name_; }

    int stock() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return stock_; // BUG
    }

    void set_stock(int stock)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        stock_ = stock; // BUG
    }

private:
    const std::string name_;
    mutable std::mutex mutex_;
    int stock_;
};

static void sell(Item &item, int pieces)
{
    item.set_stock(item.stock() - pieces); // BUG
}

// One till of the shop.
static void till(Item &item, const int *baskets, int count)
{
    for (int i = 0; i < count; ++i)
        sell(item, baskets[i]);
}

int main()
{
    Item mugs("mug", 40);
    const int morning[] = {1, 2};
    const int evening[] = {4, 3};

    std::thread first(till, std::ref(mugs), morning, 2);
    std::thread second(till, std::ref(mugs), evening, 2);
    first.join();
    second.join();

    // Fewer than that, and the purchasing department has to be told.
    const int reorder_below = 10;
    std::printf("%s: %d left\n", mugs.name().c_str(), mugs.stock());
    if (mugs.stock() < reorder_below)
        std::puts("reorder");
    return 0;
}
