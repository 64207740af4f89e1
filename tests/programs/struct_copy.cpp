// Structures are copied as wholes, and threads get their arguments by reference: the values that were copied are known.
// Prints what the threads saw. Under gcc each copy is announced as a write, then a read, before anything is copied.
// portent: threads 3
// portent: variable total*
// portent: stdout 12
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>

struct Point {
    int x, y;
};

static Point shared{1, 2};
static Point copies[2];

static void add(int &total, std::mutex &lock, int which)
{
    std::lock_guard<std::mutex> hold(lock);
    Point &mine = copies[which];
    mine = shared;
    shared = copies[0];
    total += mine.x + mine.y + which * 3;
}

int main()
{
    int total = 3;
    std::mutex lock;
    copies[0] = shared;
    std::thread first(add, std::ref(total), std::ref(lock), 0);
    std::thread second(add, std::ref(total), std::ref(lock), 1);
    first.join();
    second.join();
    std::printf("%d\n", total);
}
