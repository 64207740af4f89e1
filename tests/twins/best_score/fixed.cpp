// Parallel search for the best placement; the best score found so far is shared.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <vector>

class Best {
public:
    int get() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return score_;
    }

    void raise_to(int score)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (score > score_)
            score_ = score;
    }

private:
    mutable std::mutex mutex_;
    int score_ = 0;
};

static int evaluate(int placement)
{
    return (placement * 37) % 101;
}

static void search(Best &best, const std::vector<int> &placements)
{
    for (int placement : placements) {
        const int score = evaluate(placement);
        // The test without the lock section only saves work.
        if (score > best.get())
            best.raise_to(score);
    }
}

int main()
{
    Best best;
    const std::vector<int> lower{1, 8}, upper{5, 30};

    auto half = std::async(std::launch::async, search, std::ref(best), std::cref(lower));
    search(best, upper);
    half.get();

    int expected = 0;
    for (const auto &half_of_them : {lower, upper})
        for (int placement : half_of_them)
            expected = std::max(expected, evaluate(placement));

    if (best.get() != expected) {
        std::fprintf(stderr, "best is %d, should be %d\n", best.get(), expected);
        return EXIT_FAILURE;
    }
    std::printf("best score %d\n", expected);
    return EXIT_SUCCESS;
}
