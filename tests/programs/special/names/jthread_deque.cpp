// A std::jthread takes from a deque that main fills; nobody locks.
// portent: object backlog*
#include <deque>
#include <stop_token>
#include <thread>

struct Backlog {
    std::deque<int> jobs;
    long done = 0;
};

static Backlog backlog;

static void drain(std::stop_token stop) {
    while (!stop.stop_requested()) {
        if (!backlog.jobs.empty()) {
            backlog.done += backlog.jobs.front();
            backlog.jobs.pop_front();
        }
        std::this_thread::yield();
    }
}

int main() {
    std::jthread worker(drain);
    for (int i = 0; i < 3; i++) backlog.jobs.push_back(i);
}
