// Two threads append to one string through a reference.
// portent: object log*
#include <string>
#include <thread>

static void note(std::string& log, const char* text) {
    log += text;
}

int main() {
    std::string log;
    std::thread a(note, std::ref(log), "first ");
    std::thread b(note, std::ref(log), "second ");
    a.join();
    b.join();
    return log.empty();
}
