#include "lib/load/tensor_hash.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;

absl::Span<const std::byte> Bytes(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()),
                             text.size());
}

std::string Noise(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  return text;
}

TEST(TensorHash, PartsAddUp) {
  const std::string text = Noise(1003);
  const uint64_t whole = HashTensorPart(0, Bytes(text));
  for (const size_t cut : {0u, 8u, 512u, 1000u}) {
    EXPECT_EQ(HashTensorPart(0, Bytes(text).subspan(0, cut)) +
                  HashTensorPart(cut, Bytes(text).subspan(cut)),
              whole);
  }
}

// The formula, written out by hand for one word and a tail.
TEST(TensorHash, KnownValues) {
  EXPECT_EQ(HashTensor({}), 0u);
  // splitmix64 with seed 0: its first and second outputs.
  EXPECT_EQ(HashTensor(Bytes(std::string(8, '\0'))), 0xE220A8397B1DCDAFu + 8);
  EXPECT_EQ(HashTensor(Bytes(std::string(16, '\0'))),
            0xE220A8397B1DCDAFu + 0x6E789E6AA1B965F4u + 16);
}

TEST(TensorHash, NoticesChangesMovesAndLength) {
  const std::string text = Noise(4096);
  const uint64_t hash = HashTensor(Bytes(text));
  std::string other = text;
  other[1234] ^= 1;
  EXPECT_NE(HashTensor(Bytes(other)), hash);
  other = text;
  std::swap_ranges(other.begin(), other.begin() + 8, other.begin() + 64);
  EXPECT_NE(HashTensor(Bytes(other)), hash);
  EXPECT_NE(HashTensor(Bytes("a")), HashTensor(Bytes(std::string("a\0", 2))));
}

class ArenaHashTest : public ::testing::Test {
 protected:
  ArenaHashTest() {
    LoadSource source;
    const std::string text = Noise(5 << 20);
    source.paths = {dir_.Write("f", text)};
    uint64_t at = 13;
    for (const uint64_t size : {0, 1, 7, 8, 9, 4099, 3 << 20, 65536}) {
      SourceTensor tensor;
      tensor.file_offset = at;
      tensor.size_bytes = size;
      source.tensors.push_back(tensor);
      at += size;
    }
    plan_ = *MakeLoadPlan(source);
    arena_.assign(plan_.arena_bytes, '\xee');
    for (const PlannedTensor& tensor : plan_.tensors) {
      std::memcpy(arena_.data() + tensor.arena_offset,
                  text.data() + tensor.source.file_offset,
                  tensor.source.size_bytes);
    }
  }

  TempDir dir_;
  LoadPlan plan_;
  std::string arena_;
};

TEST_F(ArenaHashTest, FilesAndHostAgree) {
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> files, HashFiles(plan_, 3));
  const auto* arena = reinterpret_cast<const std::byte*>(arena_.data());
  EXPECT_EQ(HashHostArena(plan_, arena, 3), files);
  arena_[plan_.tensors[6].arena_offset + 77] ^= 4;
  const std::vector<uint64_t> changed = HashHostArena(plan_, arena, 1);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(changed[i] == files[i], i != 6) << i;
  }
}

}  // namespace
}  // namespace firstframe
