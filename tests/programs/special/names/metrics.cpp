// A registry of metrics: a template, a function-local static, a map of strings to counters.
// portent: object *value_ of an element of Registry::instance()::registry.metrics_
#include <future>
#include <map>
#include <string>
#include <vector>

template <typename T>
class Metric {
public:
    void add(T amount) { value_ += amount; count_++; }
    T value() const { return value_; }

private:
    T value_{};
    unsigned count_ = 0;
};

class Registry {
public:
    static Registry& instance()
    {
        static Registry registry;
        return registry;
    }
    Metric<double>& metric(const std::string& name) { return metrics_[name]; }

private:
    std::map<std::string, Metric<double>> metrics_;
};

static double measure(int amount)
{
    Metric<double>& metric = Registry::instance().metric("latency");
    metric.add(amount);
    return metric.value();
}

int main()
{
    Registry::instance().metric("latency");
    std::vector<std::future<double>> results;
    for (int i = 0; i < 2; i++)
        results.push_back(std::async(std::launch::async, measure, i));
    double sum = 0;
    for (auto& result : results)
        sum += result.get();
    return sum < 0;
}
