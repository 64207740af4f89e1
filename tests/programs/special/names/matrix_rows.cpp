// Rows of a matrix are scaled by threads that overlap by one row; names of threads are given.
// portent: object matrix.rows[1][0] in main()
#include <cstdio>
#include <pthread.h>
#include <thread>
#include <vector>

struct Matrix {
    std::vector<std::vector<double>> rows;
};

static void scale(Matrix& matrix, std::size_t from, std::size_t to, double by)
{
    for (std::size_t row = from; row < to; row++)
        for (auto& cell : matrix.rows[row])
            cell *= by;
}

int main()
{
    Matrix matrix{std::vector<std::vector<double>>(3, std::vector<double>(2, 1.0))};
    std::thread upper([&] {
        pthread_setname_np(pthread_self(), "upper half");
        scale(matrix, 0, 2, 2.0);
    });
    std::thread lower([&] {
        pthread_setname_np(pthread_self(), "lower half");
        scale(matrix, 1, 3, 3.0);
    });
    upper.join();
    lower.join();
    return 0;
}
