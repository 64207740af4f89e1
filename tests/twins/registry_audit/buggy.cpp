// Plug-ins register themselves, and an audit log remembers who did and when.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Registry;

class AuditLog {
public:
    void record(int plugin)
    {
        // The header is written by whoever comes first.
        std::call_once(opened_, [this] { header_ = "plug-ins in order of registration:"; });
        std::lock_guard<std::mutex> guard(mutex_); // BUG
        plugins_.push_back(plugin);
    }

    std::string print(const Registry &registry) const;

private:
    std::once_flag opened_;
    std::string header_;
    mutable std::mutex mutex_;
    std::vector<int> plugins_;
};

class Registry {
public:
    explicit Registry(AuditLog &audit) : audit_(audit) {}

    void add(int id, const std::string &name)
    {
        // The log has the order of the registry.
        std::lock_guard<std::mutex> guard(mutex_);
        names_[id] = name;
        audit_.record(id); // BUG
    }

    std::string name(int id) const
    {
        std::lock_guard<std::mutex> guard(mutex_); // BUG
        auto found = names_.find(id);
        return found == names_.end() ? "?" : found->second;
    }

private:
    AuditLog &audit_;
    mutable std::mutex mutex_;
    std::map<int, std::string> names_;
};

std::string AuditLog::print(const Registry &registry) const
{
    std::lock_guard<std::mutex> guard(mutex_);
    std::string text = header_;
    for (int plugin : plugins_)
        text += " " + registry.name(plugin); // BUG
    return text;
}

int main()
{
    AuditLog audit;
    Registry registry(audit);
    registry.add(1, "spell checker");

    std::thread loader([&] {
        registry.add(2, "outliner");
        registry.add(3, "word count");
    });
    std::thread status_line([&] { std::fprintf(stderr, "%s\n", audit.print(registry).c_str()); });
    loader.join();
    status_line.join();
    std::puts(audit.print(registry).c_str());
    return 0;
}
