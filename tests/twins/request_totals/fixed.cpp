// Each thread counts its requests for itself; what it counted is added to the totals when it ends.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

class Totals {
public:
    void add(int requests)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        of_threads_.push_back(requests);
    }

    int sum() const
    {
        return std::accumulate(of_threads_.begin(), of_threads_.end(), 0);
    }

private:
    std::mutex mutex_;
    std::vector<int> of_threads_;
};

static Totals totals;

struct Counter {
    ~Counter()
    {
        totals.add(requests);
    }
    int requests = 0;
};

static thread_local Counter counter;

static void serve(int requests)
{
    for (int i = 0; i < requests; i++)
        counter.requests++;
}

int main()
{
    std::thread first(serve, 2);
    std::thread second(serve, 3);
    first.join();
    second.join();

    const int sum = totals.sum();
    std::printf("%d requests\n", sum);
    return sum == 5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
