// Two transfers in opposite directions: the locks of a vector's elements, in two orders.
// portent: object bank.accounts_[*]->mutex_ in main()
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bank {

class Account {
public:
    Account(std::string owner, long balance) : owner_(std::move(owner)), balance_(balance) {}
    std::mutex& mutex() { return mutex_; }
    void add(long amount) { balance_ += amount; }

private:
    std::string owner_;
    std::mutex mutex_;
    long balance_;
};

class Bank {
public:
    void open(const std::string& owner, long balance)
    {
        accounts_.push_back(std::make_unique<Account>(owner, balance));
    }
    void transfer(std::size_t from, std::size_t to, long amount)
    {
        std::lock_guard<std::mutex> one(accounts_[from]->mutex());
        std::lock_guard<std::mutex> other(accounts_[to]->mutex());
        accounts_[from]->add(-amount);
        accounts_[to]->add(amount);
    }

private:
    std::vector<std::unique_ptr<Account>> accounts_;
};

} // namespace bank

int main()
{
    bank::Bank bank;
    bank.open("a", 100);
    bank.open("b", 100);
    std::thread there([&] { bank.transfer(0, 1, 10); });
    std::thread back([&] { bank.transfer(1, 0, 20); });
    there.join();
    back.join();
    return 0;
}
