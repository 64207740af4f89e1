// The same in C++: what is freed by what does not belong to it, used after it is deleted, thrown and not caught.
// Lines that a test expects something at end with a comment that names it.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Base {
    int value = 3;
    virtual int get() const
    {
        return value; // get
    }
    virtual ~Base() = default;
};

struct Plain {
    int value = 3;
};

struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static int new_free()
{
    int *volatile block = new int(1); // new_made
    std::free(block);                 // new_free
    return 0;
}

static int malloc_delete()
{
    int *volatile block = static_cast<int *>(std::malloc(4));
    delete block; // malloc_delete
    return 0;
}

static int array_delete()
{
    int *volatile block = new int[4];
    delete block; // array_delete
    return 0;
}

static int delete_twice()
{
    int *volatile block = new int(1);
    delete block;
    delete block; // delete_twice
    return 0;
}

static int owned_after()
{
    auto owner = std::make_unique<Plain>();
    Plain *volatile left = owner.get();
    owner.reset();      // owner_reset
    return left->value; // owned_after
}

static int shared_after()
{
    auto owner = std::make_shared<Base>();
    Base *volatile left = owner.get();
    owner.reset();
    left->value = 5; // shared_after
    return 0;
}

static int iterator_after()
{
    std::vector<int> numbers(4, 1);
    const int *volatile first = &numbers[0];
    numbers.resize(1000);
    return *first; // iterator_after
}

static int uncaught()
{
    std::thread thread([] { throw Refused("no"); }); // uncaught
    thread.join();
    return 0;
}

static int aborts_in_handler()
{
    try {
        throw Refused("no");
    } catch (const Refused &) {
        std::abort(); // aborts_in_handler
    }
}

int main(int count, char **arguments)
{
    const std::string name = count > 1 ? arguments[1] : "";
    const struct {
        const char *name;
        int (*run)();
    } cases[] = {
        {"new_free", new_free},           {"malloc_delete", malloc_delete},
        {"array_delete", array_delete},   {"delete_twice", delete_twice},
        {"owned_after", owned_after},     {"shared_after", shared_after},
        {"iterator_after", iterator_after}, {"uncaught", uncaught},
        {"aborts_in_handler", aborts_in_handler},
    };
    for (const auto &one : cases)
        if (name == one.name)
            return one.run() & 0;
    return 1;
}
