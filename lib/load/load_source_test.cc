#include "lib/load/load_source.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/load/loader.h"
#include "lib/safetensors/sharded_writer.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::TempDir;

// Writes three shards, opens them as a user would, loads them: the way of every
// caller.
TEST(LoadSource, FromAShardedCheckpointToNamedTensors) {
  TempDir dir;
  std::vector<TensorSpec> specs;
  for (int i = 0; i < 20; ++i) {
    specs.push_back({absl::StrCat("block.", i, ".weight"),
                     i % 2 ? DType::kBF16 : DType::kF32,
                     {i, 7}});
  }
  ASSERT_OK_AND_ASSIGN(auto writer, ShardedSafetensorsWriter::Create(
                                        dir.path(), "model", specs, {}, 3));
  const auto contents = [](size_t i, size_t size) {
    return std::string(size, static_cast<char>('a' + i));
  };
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string text = contents(i, i * 7 * (i % 2 ? 2 : 4));
    ASSERT_THAT(
        writer.Write(
            specs[i].name,
            absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()),
                                text.size())),
        IsOk());
  }
  ASSERT_THAT(writer.Finish(), IsOk());

  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       Checkpoint::Open(dir.path()));
  ASSERT_OK_AND_ASSIGN(
      const LoadedCheckpoint loaded,
      LoadCheckpoint(MakeLoadSource(checkpoint), LoadOptions()));
  ASSERT_EQ(loaded.tensors.size(), specs.size());
  for (const LoadedTensor& tensor : loaded.tensors) {
    size_t i = 0;
    while (i < specs.size() && specs[i].name != tensor.name) ++i;
    ASSERT_LT(i, specs.size()) << tensor.name;
    EXPECT_EQ(tensor.dtype, specs[i].dtype);
    EXPECT_EQ(tensor.shape, specs[i].shape);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.data),
                          tensor.size_bytes),
              contents(i, tensor.size_bytes));
  }
  EXPECT_EQ(loaded.report.tensor_bytes, checkpoint.size_bytes());
}

}  // namespace
}  // namespace firstframe
