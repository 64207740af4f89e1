// A scheduler runs jobs in order; jobs can be cancelled by their id at any time.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

struct Job {
    std::string name;
    int steps;
    mutable std::mutex mutex;
    int done = 0; // steps so far

    Job(std::string n, int s) : name(std::move(n)), steps(s) {}

    void run()
    {
        for (int i = 0; i < steps; ++i) {
            std::lock_guard<std::mutex> guard(mutex);
            ++done;
        }
    }
};

class Scheduler {
public:
    void add(int id, const std::string &name, int steps)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        jobs_[id] = std::make_shared<Job>(name, steps);
    }

    bool cancel(int id)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = jobs_.find(id);
        if (found == jobs_.end())
            return false;
        jobs_.erase(found);
        return true;
    }

    void run_all()
    {
        for (;;) {
            std::shared_ptr<Job> job; // keeps it while it runs
            {
                std::lock_guard<std::mutex> guard(mutex_);
                auto next = jobs_.upper_bound(last_);
                if (next == jobs_.end())
                    return;
                last_ = next->first;
                job = next->second;
            }
            job->run();
        }
    }

private:
    std::mutex mutex_;
    int last_ = 0;
    std::map<int, std::shared_ptr<Job>> jobs_;
};

int main()
{
    Scheduler scheduler;
    scheduler.add(1, "backup", 2);
    scheduler.add(2, "rotate logs", 1);
    scheduler.add(3, "send report", 2);

    std::thread runner(&Scheduler::run_all, &scheduler);
    std::thread user([&scheduler] { scheduler.cancel(3); });
    runner.join();
    user.join();
    std::puts("schedule finished");
    return 0;
}
