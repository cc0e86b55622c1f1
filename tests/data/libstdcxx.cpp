// What libstdc++ does with equal elements and with a hash map; `libstdcxx.json` is its output.
//     g++ -O1 libstdcxx.cpp -o libstdcxx && ./libstdcxx > libstdcxx.json
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

static uint64_t state = 1;
static uint64_t next(uint64_t bound) {  // xorshift64*
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (state * 2685821657736338717ull >> 33) % bound;
}

template <class T> static void list(const char * name, const std::vector<T> & values, const char * end) {
    printf("\"%s\": [", name);
    for (size_t k = 0; k < values.size(); k++) printf("%s%lld", k ? ", " : "", (long long) values[k]);
    printf("]%s", end);
}

static std::vector<int> sorted(const std::vector<int> & lengths) {
    std::vector<int> ids(lengths.size());
    for (size_t k = 0; k < ids.size(); k++) ids[k] = k;
    std::sort(ids.begin(), ids.end(), [&](int a, int b) { return lengths[a] > lengths[b]; });
    return ids;
}

// McIlroy's adversary: answers comparisons so that the median of three is always bad.
static std::vector<int> killer(int n) {
    std::vector<int> value(n, n), order(n);
    int solid = 0, candidate = 0;
    for (int k = 0; k < n; k++) order[k] = k;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        if (value[a] == n && value[b] == n) value[a == candidate ? a : b] = solid++;
        if (value[a] == n) candidate = a; else if (value[b] == n) candidate = b;
        return value[a] < value[b];
    });
    for (int & v : value) v = n - v / 2;  // longest first, in pairs of equals
    return value;
}

int main() {
    printf("{\"sort\": [");
    const char * comma = "\n";
    for (int n : {0, 1, 2, 3, 15, 16, 17, 18, 19, 20, 24, 31, 32, 33, 40, 64, 65, 100, 257})
        for (int kinds : {1, 2, 4, 40}) {
            std::vector<int> lengths(n);
            for (int & each : lengths) each = 1 + next(kinds);
            printf("%s  {", comma), comma = ",\n";
            list("lengths", lengths, ", "), list("order", sorted(lengths), "}");
        }
    for (int n : {60, 200, 500}) {
        printf("%s  {", comma);
        list("lengths", killer(n), ", "), list("order", sorted(killer(n)), "}");
    }
    printf("],\n\"hashes\": {");
    comma = "";
    for (const char * text : {"", "a", "ab", "1234567", "12345678", "123456789", "<|endoftext|>", "<|fim_prefix|>x", "\xc3\xa9\xe2\x96\x81\xe2\x96\x81", "0123456789abcdef"}) {
        printf("%s\n  \"%s\": \"%016zx\"", comma, text, std::hash<std::string>()(text)), comma = ",";
    }
    printf("},\n\"maps\": {");
    comma = "";
    for (int n : {0, 1, 2, 12, 13, 14, 29, 30, 60, 127, 128, 600, 1200}) {  // keys k0, k1, ...
        std::unordered_map<std::string, int> map;
        for (int k = 0; k < n; k++) map["k" + std::to_string(k)] = k;
        std::vector<int> order;
        for (auto & pair : map) order.push_back(pair.second);
        printf("%s\n  ", comma), comma = ",";
        list(std::to_string(n).c_str(), order, "");
    }
    printf("}}\n");
}
