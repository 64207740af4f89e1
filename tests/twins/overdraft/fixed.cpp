// A customer may overdraw one account as long as the other one covers it.
#include <cstdio>
#include <future>
#include <mutex>

class Account {
public:
    explicit Account(int balance) : balance_(balance) {}

    int balance() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return balance_;
    }
    void add(int amount)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        balance_ += amount;
    }

private:
    mutable std::mutex mutex_;
    int balance_;
};

class Customer {
public:
    Customer(int checking, int savings) : checking_(checking), savings_(savings) {}

    bool withdraw_checking(int amount) { return withdraw(checking_, amount); }
    bool withdraw_savings(int amount) { return withdraw(savings_, amount); }

    int worth() const { return checking_.balance() + savings_.balance(); }

private:
    bool withdraw(Account &account, int amount)
    {
        std::lock_guard<std::mutex> guard(rule_);
        if (worth() < amount)
            return false;
        account.add(-amount);
        return true;
    }

    std::mutex rule_; // one withdrawal at a time: the rule spans both accounts
    Account checking_;
    Account savings_;
};

int main()
{
    Customer customer(60, 40);

    auto machine = std::async(std::launch::async, [&] { return customer.withdraw_checking(80); });
    auto counter = std::async(std::launch::async, [&] { return customer.withdraw_savings(80); });
    const bool from_machine = machine.get();
    const bool at_counter = counter.get();

    if (customer.worth() < 0) {
        std::fprintf(stderr, "overdrawn: %d\n", customer.worth());
        return 1;
    }
    std::printf("%d paid out, %d left\n", 80 * (from_machine + at_counter), customer.worth());
    return 0;
}
