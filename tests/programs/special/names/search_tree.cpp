// A binary search tree with unique_ptr children; insertion without a lock while another thread looks up.
// portent: object index.root_->left->right in main()
#include <memory>
#include <optional>
#include <thread>
#include <utility>

template <typename Key, typename Value>
class Tree {
    struct Node {
        Key key;
        Value value;
        std::unique_ptr<Node> left, right;
        Node(Key k, Value v) : key(k), value(v) {}
    };

public:
    void insert(Key key, Value value)
    {
        std::unique_ptr<Node>* at = &root_;
        while (*at)
            at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = std::make_unique<Node>(key, value);
        size_++;
    }
    std::optional<Value> find(Key key) const
    {
        for (const Node* node = root_.get(); node; node = (key < node->key ? node->left : node->right).get())
            if (node->key == key)
                return node->value;
        return std::nullopt;
    }

private:
    std::unique_ptr<Node> root_;
    std::size_t size_ = 0;
};

int main()
{
    Tree<int, long> index;
    index.insert(5, 50);
    index.insert(3, 30);
    std::thread writer([&] { index.insert(4, 40); });
    std::thread reader([&] { index.find(4); });
    writer.join();
    reader.join();
    return 0;
}
