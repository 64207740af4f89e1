// Sessions of logged-in users: written at login and logout, read on every request.
#include <cstdio>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>

class Sessions {
public:
    void login(int id, const std::string &user)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        by_id_.emplace(id, user);
    }

    void logout(int id)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        by_id_.erase(id);
    }

    std::optional<std::string> user(int id) const
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        auto found = by_id_.find(id);
        if (found == by_id_.end())
            return std::nullopt;
        return found->second;
    }

    std::size_t size() const
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        return by_id_.size();
    }

private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<int, std::string> by_id_;
};

static void front_end(Sessions &sessions, int base)
{
    sessions.login(base + 1, "user" + std::to_string(base + 1));
    sessions.login(base + 2, "user" + std::to_string(base + 2));
    sessions.logout(base + 1);
}

static void request(const Sessions &sessions, int id, int *anonymous)
{
    if (!sessions.user(id))
        ++*anonymous;
}

int main()
{
    Sessions sessions;
    sessions.login(1, "admin");

    int anonymous = 0;
    std::thread logins(front_end, std::ref(sessions), 10);
    std::thread reader(request, std::cref(sessions), 1, &anonymous);
    logins.join();
    reader.join();

    std::printf("%zu sessions, %d anonymous requests\n", sessions.size(), anonymous);
    return anonymous == 0 && sessions.size() == 2 ? 0 : 1;
}
