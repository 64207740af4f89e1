// A pool of fixed-size blocks with a lock-free free list of indices.
#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <thread>

class BlockPool {
public:
    static constexpr std::uint32_t none = 0xffffffff;

    BlockPool()
    {
        for (std::uint32_t i = 0; i < blocks; ++i)
            next_[i].store(i + 1 < blocks ? i + 1 : none);
        head_.store(0);
    }

    std::uint32_t allocate()
    {
        std::uint64_t head = head_.load();
        while (index(head) != none) {
            const std::uint32_t next = next_[index(head)].load();
            if (head_.compare_exchange_weak(head, tagged(next, head)))
                return claim(index(head));
        }
        return none;
    }

    void release(std::uint32_t block)
    {
        used_[block].store(false);
        std::uint64_t head = head_.load();
        do
            next_[block].store(index(head));
        while (!head_.compare_exchange_weak(head, tagged(block, head)));
    }

private:
    static constexpr std::uint32_t blocks = 3;

    std::uint32_t claim(std::uint32_t block)
    {
        const bool twice = used_[block].exchange(true);
        assert(!twice);
        (void)twice;
        return block;
    }

    // The head's index, and above it how often the head has changed.
    static std::uint32_t index(std::uint64_t head) { return static_cast<std::uint32_t>(head); }
    static std::uint64_t tagged(std::uint32_t block, std::uint64_t before)
    {
        return ((before >> 32) + 1) << 32 | block;
    }

    std::atomic<std::uint64_t> head_;
    std::array<std::atomic<std::uint32_t>, blocks> next_;
    std::array<std::atomic<bool>, blocks> used_{};
};

static void parse(BlockPool &pool)
{
    const std::uint32_t node = pool.allocate();
    if (node != BlockPool::none)
        pool.release(node);
}

// Needs two blocks for a while, then another one.
static void transform(BlockPool &pool)
{
    const std::uint32_t scratch = pool.allocate();
    const std::uint32_t result = pool.allocate();
    if (scratch != BlockPool::none)
        pool.release(scratch);
    const std::uint32_t copy = pool.allocate();
    if (copy != BlockPool::none)
        pool.release(copy);
    if (result != BlockPool::none)
        pool.release(result);
}

int main()
{
    BlockPool pool;
    std::thread parser(parse, std::ref(pool));
    std::thread transformer(transform, std::ref(pool));
    parser.join();
    transformer.join();
    std::puts("all blocks returned");
    return 0;
}
