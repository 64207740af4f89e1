// A board with the current quote, and a display that shows the spread.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

struct Quote {
    int bid;
    int ask;
};

class Board {
public:
    explicit Board(Quote quote) : quote_(quote) {}

    void update(Quote quote)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        quote_ = quote; // BUG
    }

    int bid() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return quote_.bid; // BUG
    }
    int ask() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return quote_.ask; // BUG
    }

private:
    mutable std::mutex mutex_;
    Quote quote_;
};

// The market moves; the spread stays.
static void market(Board &board)
{
    board.update({10010, 10014});
    board.update({10025, 10029});
}

static void display(const Board &board)
{
    const int bid = board.bid(); // BUG
    const int ask = board.ask(); // BUG
    std::printf("spread %d\n", ask - bid);
}

int main()
{
    Board board({10000, 10004});
    std::thread feed(market, std::ref(board));
    std::thread screen(display, std::cref(board));
    feed.join();
    screen.join();
    return 0;
}
