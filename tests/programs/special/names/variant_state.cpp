// The state of a connection is a variant that two threads set.
// portent: object Connection::state_ (which of its types) of Connection from variant_state.cpp:*
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

struct Idle {
    int since = 0;
};
struct Busy {
    int job = 0;
    int worker = 0;
};

class Connection {
public:
    void start(int job) { state_ = Busy{job, 1}; last_ = job; }
    void stop() { state_ = Idle{3}; last_.reset(); }
    bool busy() const { return std::holds_alternative<Busy>(state_); }

private:
    std::variant<Idle, Busy> state_;
    std::optional<int> last_;
};

int main()
{
    auto connection = std::make_shared<Connection>();
    std::thread starter([connection] { connection->start(7); });
    std::thread stopper([connection] { connection->stop(); });
    starter.join();
    stopper.join();
    return connection->busy() ? 0 : 0;
}
