// Reclamation by epochs: readers announce the epoch they read in, the writer frees an old table when no reader can have it.
// Prints that every reader saw whole tables: none is freed while somebody reads it.
// portent: threads 4
// portent: stdout read
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

struct Table { int version; int size; };
static std::atomic<Table *> current{new Table{1, 10}};
static std::atomic<unsigned> epoch{1};
static std::atomic<unsigned> announced[2];

static int read_size(int reader)
{
    unsigned now;
    do {
        now = epoch.load();
        announced[reader].store(now);
    } while (epoch.load() != now);
    Table *table = current.load();
    int size = table->size + table->version;
    announced[reader].store(0);
    return size;
}
static void replace(int version)
{
    Table *fresh = new Table{version, 10 * version};
    Table *old = current.exchange(fresh);
    unsigned before = epoch.fetch_add(1);
    for (auto &reader : announced)
        for (;;) {
            unsigned seen = reader.load();
            if (seen == 0 || seen > before)
                break;
            std::this_thread::yield();
        }
    delete old;
}
int main()
{
    int sums[2] = {0, 0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; r++)
        readers.emplace_back([r, &sums] {
            for (int i = 0; i < 3; i++)
                sums[r] += read_size(r);
        });
    std::thread writer([] {
        for (int version = 2; version <= 4; version++)
            replace(version);
    });
    for (auto &reader : readers)
        reader.join();
    writer.join();
    bool right = sums[0] >= 33 && sums[1] >= 33;
    std::printf("%s\n", right ? "read" : "wrong");
    delete current.load();
    return right ? 0 : 1;
}
