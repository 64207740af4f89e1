// A base class stops its thread in its destructor, when the derived part is gone.
// portent: object *Counter* | *worker (virtual table) in main()
#include <atomic>
#include <memory>
#include <thread>

class Worker {
public:
    virtual ~Worker() {
        stop_ = true;
        thread_.join();
    }
    void start() {
        thread_ = std::thread([this] {
            while (!stop_) step();
        });
    }

protected:
    virtual void step() { std::this_thread::yield(); }

private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

class Counter : public Worker {
    void step() override {
        count_++;
        std::this_thread::yield();
    }
    long count_ = 0;
};

int main() {
    auto worker = std::make_unique<Counter>();
    worker->start();
}
