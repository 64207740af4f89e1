// Accounts with one lock each, and transfers between them.
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

class Account {
public:
    Account(std::string owner, long cents) : owner_(std::move(owner)), cents_(cents) {}

    const std::string &owner() const { return owner_; }
    long balance() const
    {
        std::lock_guard<std::mutex> guard(mutex_);
        return cents_;
    }

    // Moves money or changes nothing.
    friend bool transfer(Account &from, Account &to, long cents)
    {
        if (&from == &to)
            throw std::invalid_argument("transfer to the same account");
        std::scoped_lock guard(from.mutex_, to.mutex_);
        if (from.cents_ < cents)
            return false;
        from.cents_ -= cents;
        to.cents_ += cents;
        return true;
    }

private:
    const std::string owner_;
    mutable std::mutex mutex_;
    long cents_;
};

bool transfer(Account &from, Account &to, long cents);

static void standing_orders(Account &payer, Account &payee, long cents)
{
    for (int month = 0; month < 2; ++month)
        transfer(payer, payee, cents);
}

int main()
{
    Account alice("Alice", 10000);
    Account bob("Bob", 5000);

    std::thread rent(standing_orders, std::ref(alice), std::ref(bob), 1200);
    std::thread insurance(standing_orders, std::ref(bob), std::ref(alice), 300);
    rent.join();
    insurance.join();

    for (const Account *account : {&alice, &bob})
        std::printf("%s: %ld\n", account->owner().c_str(), account->balance());
    return alice.balance() + bob.balance() == 15000 ? 0 : 1;
}
