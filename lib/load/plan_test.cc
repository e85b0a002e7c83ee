#include "lib/load/plan.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

SourceTensor MakeTensor(std::string name, uint32_t file, uint64_t offset,
                        uint64_t size) {
  SourceTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = DType::kU8;
  tensor.shape = {static_cast<int64_t>(size)};
  tensor.file = file;
  tensor.file_offset = offset;
  tensor.size_bytes = size;
  return tensor;
}

TEST(LoadPlan, AlignsInFileOrder) {
  LoadSource source;
  source.paths = {"a", "b"};
  source.tensors = {MakeTensor("late", 1, 8, 10), MakeTensor("y", 0, 108, 300),
                    MakeTensor("x", 0, 100, 8), MakeTensor("none", 0, 108, 0)};
  ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(source));
  ASSERT_EQ(plan.tensors.size(), 4u);
  EXPECT_EQ(plan.tensors[0].source.name, "x");
  EXPECT_EQ(plan.tensors[0].arena_offset, 0u);
  EXPECT_EQ(plan.tensors[3].source.name, "late");
  EXPECT_EQ(plan.tensors[3].arena_offset % 256, 0u);
  EXPECT_EQ(plan.tensor_bytes, 318u);
  EXPECT_EQ(plan.arena_bytes, 256u + 512 + 256);
}

TEST(LoadPlan, RefusesWhatCannotBe) {
  LoadSource source;
  source.paths = {"a"};
  source.tensors = {MakeTensor("t", 1, 0, 1)};
  EXPECT_THAT(MakeLoadPlan(source),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'t'")));
  source.tensors = {
      MakeTensor("huge", 0, 0, std::numeric_limits<uint64_t>::max() - 10)};
  EXPECT_THAT(
      MakeLoadPlan(source),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'huge'")));
}

// Whatever the tensors and the ranges, every byte of every tensor is in exactly
// one segment, and pieces keep their promises.
TEST(CutPieces, CoversEveryByteOnce) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    LoadSource source;
    const uint32_t files = 1 + random() % 3;
    for (uint32_t f = 0; f < files; ++f) {
      source.paths.push_back(absl::StrCat("f", f));
      uint64_t at = 8 + random() % 100;
      for (int i = random() % 20; i >= 0; --i) {
        const uint64_t size = random() % (random() % 4 ? 300 : 9000);
        source.tensors.push_back(
            MakeTensor(absl::StrCat(f, ".", i), f, at, size));
        at += size + (random() % 8 == 0 ? 5 : 0);  // now and then a hole
      }
    }
    ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(source));
    const uint64_t window = 256 << (random() % 5);
    PieceList list;
    const uint64_t step = 1 + random() % 5000;
    for (uint64_t at = 0; at < plan.arena_bytes; at += step) {
      CutPieces(plan, {at, std::min(at + step, plan.arena_bytes)}, window,
                static_cast<uint32_t>(at / step), ReadPath::kCached, &list);
    }
    EXPECT_EQ(list.tensor_bytes, plan.tensor_bytes);
    std::vector<int> seen(plan.arena_bytes);
    for (const Piece& piece : list.pieces) {
      ASSERT_GT(piece.num_segments, 0u);
      EXPECT_LE(piece.arena.size_bytes(), window);
      EXPECT_EQ(piece.arena.begin / window, (piece.arena.end - 1) / window);
      EXPECT_EQ(piece.arena.begin / step, piece.group);
      uint64_t file_at = piece.file_begin;
      for (const Segment& segment : list.SegmentsOf(piece)) {
        EXPECT_EQ(segment.file_offset, file_at) << "contiguous in the file";
        file_at += segment.size_bytes;
        for (uint64_t i = 0; i < segment.size_bytes; ++i) {
          ++seen[segment.arena_offset + i];
        }
      }
      EXPECT_EQ(file_at, piece.file_end);
    }
    for (const PlannedTensor& tensor : plan.tensors) {
      for (uint64_t i = 0; i < tensor.source.size_bytes; ++i) {
        ASSERT_EQ(seen[tensor.arena_offset + i], 1);
      }
    }
  }
}

}  // namespace
}  // namespace firstframe
