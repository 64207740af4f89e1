// To be debugged: the race is inside of a vector, of which nobody wants to see more than the line that calls it.
#include <mutex>
#include <thread>
#include <vector>

struct Registry {
    std::mutex mutex;
    std::vector<int> values = std::vector<int>(1, 3);

    void add(int value)
    {
        std::lock_guard<std::mutex> guard(mutex);
        values.push_back(value); // writes
    }

    int count()
    {
        int found = 1;
        found += values.size(); // reads
        found += 1;             // behind
        return found;
    }
};

int main()
{
    Registry registry;
    std::thread adder([&] { registry.add(7); });
    int seen = registry.count();
    adder.join();
    return seen > 100;
}
