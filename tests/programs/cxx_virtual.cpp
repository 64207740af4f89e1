// Objects with virtual functions are made, used and destroyed by different threads; static and thread-local objects are destroyed too.
// Prints who spoke, and the order of destruction at the end.
// portent: threads 3
// portent: stdout thread-local destroyed
// portent: stdout thread-local destroyed
// portent: stdout derived 1, derived 2
// portent: stdout static destroyed
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

struct Base {
    int number;
    explicit Base(int n) : number(n) {}
    virtual ~Base() = default;
    virtual int speak() const { return -number; }
};

struct Derived final : Base {
    using Base::Base;
    int speak() const override { return number; }
};

struct Says {
    const char *text;
    ~Says() { std::printf("%s destroyed\n", text); }
};

static Says at_end{"static"};
static std::mutex lock;

static int work(std::unique_ptr<Base> &object)
{
    thread_local Says mine{"thread-local"};
    std::lock_guard held(lock);
    int said = mine.text ? object->speak() : 0;
    object.reset();
    return said;
}

int main()
{
    std::unique_ptr<Base> first = std::make_unique<Derived>(1), second;
    int a = 0, b = 0;
    std::thread makes([&] { second = std::make_unique<Derived>(2), a = work(first); });
    makes.join();
    std::thread uses([&] { b = work(second); });
    uses.join();
    std::printf("derived %d, derived %d\n", a, b);
    return at_end.text ? 0 : 1;
}
