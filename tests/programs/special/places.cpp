// Things that libraries do for a program. Lines end with the name by which crates/portent/tests/native/stacks.rs asks for
// them: every event there has its innermost place of the user's own code on that line.
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Node {
    int value = 0;
};

static std::mutex guard, other;
static std::condition_variable ready;
static std::vector<int> numbers;
static std::deque<int> queue;
static std::map<int, int> table;
static std::string text;
static bool opened = false;
static int body = 0;
static std::shared_ptr<Node> shared;

static void use_containers()
{
    other.lock(); // lock
    other.unlock(); // unlock
    std::lock_guard<std::mutex> hold(guard); // lock_guard
    numbers.push_back(1); // vector
    queue.push_back(2); // deque
    table[3] = 4; // map
    text += "longer than what fits into the string object itself";
}

static void wait_for_opener()
{
    std::unique_lock<std::mutex> hold(guard); // unique_lock
    while (!opened)
        ready.wait(hold); // wait
}

static void open()
{
    {
        std::lock_guard<std::mutex> hold(guard);
        opened = true;
    }
    ready.notify_all(); // notify
}

int main()
{
    shared = std::make_shared<Node>();
    std::thread waiter(wait_for_opener); // thread
    std::thread user([] { use_containers(); body++; }); // lambda
    user.join(); // join user
    open();
    waiter.join(); // join waiter
    auto later = std::async(std::launch::async, [] { return queue.front(); }); // async
    later.get();
    shared.reset(); // reset
    return numbers[0] - 1;
}
