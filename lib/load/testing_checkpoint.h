// A checkpoint of random bytes for tests: files, tensors, and what they hold.

#ifndef LIB_LOAD_TESTING_CHECKPOINT_H_
#define LIB_LOAD_TESTING_CHECKPOINT_H_

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/load/plan.h"
#include "lib/testing/temp_dir.h"

namespace firstframe::testing {

// Two files, each with a large tensor, `num_small` small ones (some empty, most
// of no round size) and a middling one, at odd offsets.
class RandomCheckpoint {
 public:
  explicit RandomCheckpoint(int num_small, uint64_t large_bytes = 5'255'225) {
    std::mt19937 random(3);
    for (int f = 0; f < 2; ++f) {
      std::string text(100 + f * 3, 'h');
      const auto add = [&](uint64_t size) {
        SourceTensor tensor;
        tensor.name = absl::StrCat("t", f, ".", source.tensors.size());
        tensor.dtype = DType::kU8;
        tensor.shape = {static_cast<int64_t>(size)};
        tensor.file = static_cast<uint32_t>(f);
        tensor.file_offset = text.size();
        tensor.size_bytes = size;
        source.tensors.push_back(tensor);
        for (uint64_t i = 0; i < size; ++i) {
          text.push_back(static_cast<char>(random()));
        }
      };
      add(large_bytes);
      for (int i = 0; i < num_small; ++i) add(random() % 700);
      add((1 << 20) - 1);
      source.paths.push_back(dir.Write(absl::StrCat("shard-", f), text));
      texts.push_back(text);
    }
  }

  // Returns the name of the first tensor that differs in the arena, or "".
  std::string FirstDifference(const LoadPlan& plan,
                              const std::byte* arena) const {
    for (const PlannedTensor& tensor : plan.tensors) {
      const SourceTensor& from = tensor.source;
      if (std::memcmp(arena + tensor.arena_offset,
                      texts[from.file].data() + from.file_offset,
                      from.size_bytes) != 0) {
        return from.name;
      }
    }
    return "";
  }

  TempDir dir;
  LoadSource source;
  std::vector<std::string> texts;  // of the files
};

}  // namespace firstframe::testing

#endif  // LIB_LOAD_TESTING_CHECKPOINT_H_
