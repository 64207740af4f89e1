// Accounts in a vector; a transfer changes two of them without a lock.
// portent: object accounts[3].balance
#include <memory>
#include <thread>
#include <vector>

struct Account {
    long id;
    long balance;
};

static std::vector<Account> accounts;

static void transfer(int from, int to, long amount) {
    accounts[from].balance -= amount;
    accounts[to].balance += amount;
}

int main() {
    for (long i = 0; i < 4; i++) accounts.push_back({i, 100});
    std::thread a(transfer, 0, 3, 10), b(transfer, 3, 1, 20);
    a.join();
    b.join();
    return accounts[0].balance > 100;
}
