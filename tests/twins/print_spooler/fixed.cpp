// A print spooler: documents are queued, whichever printer is free takes the next.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct Document {
    std::string title;
    int pages;
};

class Spooler {
public:
    void submit(Document document)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        pending_.push_back(std::move(document));
        // Printers differ in what they do with it, so all of them are told.
        changed_.notify_all();
    }

    Document next()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !pending_.empty(); });
        Document document = pending_.at(0);
        pending_.pop_front();
        return document;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Document> pending_;
};

class Printer {
public:
    Printer(Spooler &spooler, int documents) : thread_([this, &spooler, documents] {
        for (int i = 0; i < documents; ++i)
            pages_ += spooler.next().pages;
    })
    {
    }

    int finish()
    {
        thread_.join();
        return pages_;
    }

private:
    int pages_ = 0;
    std::thread thread_;
};

int main()
{
    Spooler spooler;
    Printer laser(spooler, 1);
    Printer inkjet(spooler, 1);

    spooler.submit({"invoice.pdf", 2});
    std::vector<Document> rest{{"manual.pdf", 40}};
    for (auto &document : rest)
        spooler.submit(std::move(document));

    const int pages = laser.finish() + inkjet.finish();
    std::printf("%d pages printed\n", pages);
    return pages == 42 ? 0 : 1;
}
