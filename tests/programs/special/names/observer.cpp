// An observer is destroyed while the subject still notifies it.
// portent: object Display*
#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

class Observer {
public:
    virtual ~Observer() = default;
    virtual void changed(int value) = 0;
};

class Display : public Observer {
public:
    void changed(int value) override { shown_ = value; }
    int shown() const { return shown_; }

private:
    int shown_ = 0;
};

class Subject {
public:
    void attach(Observer* observer)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        observers_.push_back(observer);
    }
    void detach(Observer* observer)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        observers_.erase(std::remove(observers_.begin(), observers_.end(), observer), observers_.end());
    }
    void set(int value)
    {
        std::vector<Observer*> copy;
        {
            std::lock_guard<std::mutex> guard(mutex_);
            copy = observers_;
        }
        for (Observer* observer : copy)
            observer->changed(value);
    }

private:
    std::mutex mutex_;
    std::vector<Observer*> observers_;
};

int main()
{
    Subject subject;
    auto display = std::make_unique<Display>();
    subject.attach(display.get());
    std::thread setter([&] { subject.set(5); });
    subject.detach(display.get());
    display.reset();
    setter.join();
    return 0;
}
