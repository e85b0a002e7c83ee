// Stands in for libFuzzer in normal builds: feeds a fuzz target its corpus, and
// what lies near it, so that a target cannot rot and every parser meets
// truncated and damaged input in each test run.
//
// For every seed: the whole, every prefix, and every byte replaced by each of a
// few troublesome ones (seeds over 4 KiB: at 4096 spread places).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// A target may define this to bring seeds that it builds.
__attribute__((weak)) std::vector<std::string> FuzzSeeds();

namespace {

void RunOne(const std::string& input) {
  // A copy of exact size lets the sanitizers see a read past the end.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void RunNear(const std::string& seed) {
  constexpr size_t kMaxPlaces = 4096;
  constexpr char kBytes[] = {'\0', '\xFF', '\x80', '"', '\\', '{', '}',
                             '[',  ']',    ',',    ':', '0',  '9', '-'};
  const size_t step = seed.size() / kMaxPlaces + 1;
  for (size_t i = 0; i < seed.size(); i += step) {
    RunOne(seed.substr(0, i));
    std::string damaged = seed;
    for (const char byte : kBytes) {
      damaged[i] = byte;
      RunOne(damaged);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds = {""};
  if (FuzzSeeds != nullptr) seeds = FuzzSeeds();
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 2;
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
  }
  for (const std::string& seed : seeds) {
    RunOne(seed);
    if (seed.size() <= (1 << 16)) RunNear(seed);
  }
  std::printf("replayed %zu seeds\n", seeds.size());
  return 0;
}
