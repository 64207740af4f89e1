// A checkout waits for the payment service, or until the customer gives up, whichever comes first.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>

class Checkout {
public:
    void paid()
    {
        settle("paid");
    }

    void given_up()
    {
        settle("given up");
    }

    std::string outcome()
    {
        return outcome_.get_future().get();
    }

private:
    void settle(std::string how)
    {
        if (settled_.exchange(true))
            return;
        outcome_.set_value(std::move(how));
    }

    std::atomic<bool> settled_{false};
    std::promise<std::string> outcome_;
};

static void payment_service(Checkout &checkout)
{
    checkout.paid();
}

static void customer(Checkout &checkout)
{
    checkout.given_up();
}

int main()
{
    Checkout checkout;
    std::thread service(payment_service, std::ref(checkout));
    std::thread waiting(customer, std::ref(checkout));
    const std::string outcome = checkout.outcome();
    service.join();
    waiting.join();

    const bool known = outcome == "paid" || outcome == "given up";
    std::printf("settled: %s\n", known ? "yes" : outcome.c_str());
    return known ? EXIT_SUCCESS : EXIT_FAILURE;
}
