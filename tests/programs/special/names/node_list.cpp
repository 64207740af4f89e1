// A list whose head two threads push to without a lock.
// portent: object queue.head
#include <thread>

struct Node {
    int value;
    Node* next;
};

struct Queue {
    Node* head = nullptr;
};

static Queue queue;

static void push(int value) {
    Node* node = new Node{value, nullptr};
    node->next = queue.head;
    queue.head = node;
}

int main() {
    std::thread a(push, 1), b(push, 2);
    a.join();
    b.join();
    int length = 0;
    for (Node* node = queue.head; node; node = node->next) length++;
    return length > 2;
}
