// Price feed: components subscribe at any time, ticks are delivered to whoever
// is subscribed.
#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class PriceFeed {
public:
    using Observer = std::function<void(double)>;

    void subscribe(Observer observer)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        observers_.push_back(std::move(observer));
    }

    void publish(double price)
    {
        // A copy, so that observers are called without the lock.
        std::vector<Observer> observers;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            observers = observers_;
        }
        for (const auto &observer : observers)
            observer(price);
    }

private:
    std::mutex mutex_;
    std::vector<Observer> observers_;
};

class Alarm {
public:
    Alarm(PriceFeed &feed, double limit) : limit_(limit)
    {
        feed.subscribe([this](double price) {
            if (price > limit_)
                rings_.fetch_add(1);
        });
    }
    int rings() const { return rings_.load(); }

private:
    const double limit_;
    std::atomic<int> rings_{0};
};

int main()
{
    PriceFeed feed;
    Alarm high(feed, 100.0);

    std::thread ticker([&feed] {
        feed.publish(99.5);
        feed.publish(101.25);
    });

    // Added while the feed is already running.
    Alarm low(feed, 50.0);

    ticker.join();
    feed.publish(60.0);
    if (high.rings() != 1 || low.rings() < 1) {
        std::fprintf(stderr, "wrong alarms: high %d, low %d\n", high.rings(), low.rings());
        return 1;
    }
    std::puts("alarms as expected");
    return 0;
}
