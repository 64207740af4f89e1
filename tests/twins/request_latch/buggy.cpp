// Calls to a remote service: the caller waits, the receiver thread completes.
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

class Call {
public:
    void complete(std::string answer)
    {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            answer_ = std::move(answer);
            done_ = true;
        }
        changed_.notify_all(); // BUG
    }

    std::string wait()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return done_; });
        return answer_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::string answer_;
};

using CallHandle = Call *;

class Client {
public:
    std::string call(int id)
    {
        std::unique_ptr<Call> pending(new Call);
        {
            std::lock_guard<std::mutex> guard(mutex_);
            calls_[id] = pending.get();
        }
        arrived_.notify_one();
        return pending->wait(); // BUG
    } // BUG

    // The receiver: answers as they come in.
    void receive(int answers)
    {
        for (int i = 0; i < answers; ++i) {
            std::unique_lock<std::mutex> lock(mutex_);
            arrived_.wait(lock, [this] { return !calls_.empty(); });
            const int id = calls_.begin()->first;
            CallHandle call = calls_.begin()->second;
            calls_.erase(calls_.begin());
            lock.unlock();
            call->complete("answer " + std::to_string(id)); // BUG
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<int, CallHandle> calls_;
};

int main()
{
    Client client;
    std::thread receiver(&Client::receive, &client, 2);
    const std::string first = client.call(1);
    const std::string second = client.call(2);
    receiver.join();
    std::printf("%s, %s\n", first.c_str(), second.c_str());
    return 0;
}
