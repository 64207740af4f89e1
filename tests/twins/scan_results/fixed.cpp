// Searches a few files for a word, each half of them in a thread of its own.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

struct File {
    std::string name;
    std::string text;
};

struct Match {
    std::string file;
    std::size_t offset;
};

static void scan(const File &file, const std::string &word, std::vector<Match> &matches)
{
    for (auto at = file.text.find(word); at != std::string::npos; at = file.text.find(word, at + 1))
        matches.push_back({file.name, at});
}

template <typename Iterator>
static void scan_all(Iterator first, Iterator last, const std::string &word, std::vector<Match> &matches)
{
    for (; first != last; ++first)
        scan(*first, word, matches);
}

static void print(const std::vector<Match> &matches)
{
    for (const Match &match : matches)
        std::printf("%s:%zu\n", match.file.c_str(), match.offset);
}

int main()
{
    const std::vector<File> files{
        {"log.1", "ok ok error ok"},
        {"log.2", "error at start"},
        {"log.3", "all is well"},
        {"log.4", "error, then another error"},
    };
    const std::string word = "error";
    const auto middle = files.begin() + 2;

    std::vector<Match> matches;
    // Each thread has its own list; joining hands it over.
    std::vector<Match> more;
    std::thread lower([&] { scan_all(files.begin(), middle, word, matches); });
    std::thread upper([&] { scan_all(middle, files.end(), word, more); });
    lower.join();
    upper.join();
    matches.insert(matches.end(), more.begin(), more.end());

    std::sort(matches.begin(), matches.end(), [](const Match &a, const Match &b) {
        return a.file != b.file ? a.file < b.file : a.offset < b.offset;
    });
    print(matches);
    return matches.size() == 4 ? 0 : 1;
}
