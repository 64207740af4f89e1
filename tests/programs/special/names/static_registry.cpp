// A registry that static initialisation fills is read by a thread which another static starts.
// portent: object registry()::names*
#include <string>
#include <thread>
#include <vector>

static std::vector<std::string>& registry() {
    static std::vector<std::string> names;
    return names;
}

struct Register {
    explicit Register(const char* name) { registry().push_back(name); }
};

static Register first("first");
static std::thread early([] {
    if (registry().size() > 3) std::terminate();
});
static Register second("second");

int main() {
    early.join();
    return registry().size() == 2 ? 0 : 1;
}
