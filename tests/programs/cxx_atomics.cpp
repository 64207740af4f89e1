// std::atomic of every size and of enums, pointers, floats and flags, with every order; a lock-free stack by compare-exchange.
// Prints the counters; nothing is lost.
// portent: threads 5
// portent: stdout 144 400 400 400, popped 200 of 200, float 400
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

enum class Colour : std::uint8_t { red, green };

struct Node {
    int number;
    Node *next;
};

static std::atomic<std::uint8_t> one;
static std::atomic<std::uint16_t> two;
static std::atomic<std::uint32_t> four;
static std::atomic<std::uint64_t> eight;
static std::atomic<float> real;
static std::atomic<Node *> stack;
static std::atomic_flag flag = ATOMIC_FLAG_INIT;
static std::atomic<int> popped;
static std::vector<Node> nodes(200);

static void push(Node *node)
{
    node->next = stack.load(std::memory_order_relaxed);
    while (!stack.compare_exchange_weak(node->next, node, std::memory_order_release, std::memory_order_relaxed))
        ;
}

static void work(int me)
{
    for (int i = 0; i < 50; i++)
        push(&nodes[me * 50 + i]);
    for (int i = 0; i < 100; i++) {
        one.fetch_add(1, std::memory_order_relaxed);
        two.fetch_add(1, std::memory_order_acquire);
        four.fetch_add(1, std::memory_order_release);
        eight++;
        real.fetch_add(1.0f);
        while (flag.test_and_set(std::memory_order_acq_rel))
            ;
        flag.clear(std::memory_order_release);
    }
}

int main()
{
    std::atomic<Colour> colour{Colour::red};
    assert(colour.exchange(Colour::green) == Colour::red && colour.load(std::memory_order_consume) == Colour::green);
    std::atomic<bool> truth{false};
    bool expected = true;
    assert(!truth.compare_exchange_strong(expected, true) && !expected);
    std::atomic<int> number{6};
    assert((number |= 1) == 7 && (number &= 5) == 5 && (number ^= 1) == 4 && number-- == 4 && --number == 2);
    std::atomic_thread_fence(std::memory_order_release);
    int plain = 0;
    std::atomic_ref<int> reference(plain);
    reference.fetch_add(3);
    assert(plain == 3);

    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
    // One thread takes all: a concurrent pop would need more than a pointer.
    for (Node *node = stack.exchange(nullptr, std::memory_order_acquire); node; node = node->next)
        popped++;
    std::printf("%d %d %u %lu, popped %d of %zu, float %.0f\n", one.load(), two.load(), four.load(),
                static_cast<unsigned long>(eight.load()), popped.load(), nodes.size(), static_cast<double>(real.load()));
}
