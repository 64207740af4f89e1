// Decoder and renderer: messages are handed over through a queue.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

struct Frame {
    int number = 0;
    std::string caption;
    bool key_frame = false;
};

class FrameQueue {
public:
    void push(std::shared_ptr<Frame> frame)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        frames_.push_back(std::move(frame));
        filled_.notify_one();
    }

    std::shared_ptr<Frame> pop()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        filled_.wait(lock, [this] { return !frames_.empty(); });
        auto frame = std::move(frames_.front());
        frames_.pop_front();
        return frame;
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::shared_ptr<Frame>> frames_;
};

static void decode(FrameQueue &queue, int count)
{
    for (int number = 1; number <= count; ++number) {
        auto frame = std::make_shared<Frame>();
        frame->number = number;
        frame->caption = "frame " + std::to_string(number);
        queue.push(frame);
        frame->key_frame = number % 2 == 1; // BUG
    }
}

static int render(FrameQueue &queue, int count)
{
    int key_frames = 0;
    for (int i = 0; i < count; ++i) {
        const auto frame = queue.pop();
        if (frame->key_frame) // BUG
            ++key_frames;
        std::printf("%s\n", frame->caption.c_str());
    }
    return key_frames;
}

int main()
{
    FrameQueue queue;
    std::thread decoder(decode, std::ref(queue), 3);
    const int key_frames = render(queue, 3);
    decoder.join();
    std::fprintf(stderr, "%d key frames\n", key_frames);
    return 0;
}
