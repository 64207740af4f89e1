// A pool of two workers with two bugs: a worker that wakes does not look again whether there is work, and the first one to
// take work frees the block that the other one may still use. The run in which both show is part of the tests of reports.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
static std::mutex m;
static std::condition_variable cv;
static int count, *block;

static void take() {
    std::unique_lock<std::mutex> lock(m);
    if (count == 0) cv.wait(lock);
    if (count == 0) std::puts("worker: got nothing");
    count--;
}

static int *make() {
    static int blocks;
    return new int(++blocks);
}

static void put() {
    std::lock_guard<std::mutex> lock(m);
    count++;
    cv.notify_all();
}

// Frees the block.
static void drop(int **owner) {
    int *old = *owner;
    *owner = nullptr;
    delete old;
}

static void worker(bool last) {
    take();
    if (last) {
        std::puts("last");
    }
    std::printf("%d\n", *block);
    drop(&block);
}
static void run(bool last) { worker(last); }

int main() {
    // Both workers wait for the same block.
    block = make();
    std::thread one(run, false);
    std::thread two(run, true);
    put();
    put();
    one.join();
    two.join();
}
