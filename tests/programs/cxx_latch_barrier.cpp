// C++20 latch and barrier: threads start together, work in phases with a completion function, and one drops out.
// Prints the phases.
// portent: threads 4
// portent: stdout started 3, phases 4, sum 10
#include <barrier>
#include <cstdio>
#include <latch>
#include <thread>
#include <vector>

int main()
{
    std::latch start(3), finish(3);
    int started = 0, phases = 0, sum = 0, work[3] = {};
    std::barrier phase(3, [&]() noexcept {
        phases++;
        for (int &done : work)
            sum += done, done = 0;
    });
    std::vector<std::thread> threads;
    for (int me = 0; me < 3; me++)
        threads.emplace_back([&, me] {
            start.arrive_and_wait();
            for (int i = 0; i < (me == 2 ? 2 : 4); i++) {
                work[me] = 1;
                if (me == 2 && i == 1)
                    phase.arrive_and_drop();
                else
                    phase.arrive_and_wait();
            }
            finish.count_down();
        });
    start.wait();
    started = 3;
    finish.wait();
    for (auto &thread : threads)
        thread.join();
    std::printf("started %d, phases %d, sum %d\n", started, phases, sum);
}
