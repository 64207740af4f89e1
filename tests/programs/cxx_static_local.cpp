// Static locals that threads race to initialise: the guard lets one do it; an initialiser that throws is tried again.
// Prints how often constructors ran.
// portent: threads 5
// portent: ops onceb 2+
// portent: stdout made 1, tries 2, value 42
#include <cassert>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

static int made, tries;

struct Settings {
    int value;
    Settings() : value(42) { made++; }
};

struct Stubborn {
    Stubborn()
    {
        if (++tries == 1)
            throw std::runtime_error("not yet");
    }
};

static Settings &settings()
{
    static Settings one;
    return one;
}

static bool stubborn()
{
    try {
        static Stubborn one;
        return true;
    } catch (const std::runtime_error &) {
        return false;
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            assert(settings().value == 42);
            if (!stubborn())
                assert(stubborn());
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("made %d, tries %d, value %d\n", made, tries, settings().value);
}
