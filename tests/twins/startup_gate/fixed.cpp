// A server whose listener runs in its own thread; clients may start once it is up.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

class Listener {
public:
    void start()
    {
        thread_ = std::thread([this] { listen(); });
        std::unique_lock<std::mutex> lock(mutex_);
        up_.wait(lock, [this] { return port_ != 0; });
    }

    void stop() { thread_.join(); }

    int port() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return port_;
    }

    std::string route(const std::string &path) const
    {
        auto found = routes_.find(path);
        return found == routes_.end() ? "404" : found->second;
    }

private:
    void listen()
    {
        // Routes are complete before anybody is told of the port.
        routes_.emplace("/", "index.html");
        routes_.emplace("/about", "about.html");
        routes_.emplace("/contact", "contact.html");

        // The port of the last run may still be taken for a moment.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));

        std::lock_guard<std::mutex> guard(mutex_);
        port_ = 8080;
        up_.notify_one();
    }

    mutable std::mutex mutex_;
    std::condition_variable up_;
    int port_ = 0;
    std::map<std::string, std::string> routes_;
    std::thread thread_;
};

int main()
{
    Listener listener;
    listener.start();
    std::printf("listening on %d, / is %s\n", listener.port(), listener.route("/").c_str());
    listener.stop();
    return 0;
}
