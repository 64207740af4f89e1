// Each thread counts for itself and gives a pointer to its own counter away.
// portent: object busiest
#include <thread>

struct Counter {
    long hits = 0;
};

static thread_local Counter counted;
static Counter* busiest = nullptr;

static void work() {
    counted.hits += 2;
    busiest = &counted;
}

int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
    return busiest == nullptr;
}
