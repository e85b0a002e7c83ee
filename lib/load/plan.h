// Where every byte of a checkpoint goes, before one is read.
//
// The destination is one arena: the tensors in the order in which they lie in
// the files, each at a multiple of 256 bytes (FP8 GEMM wants 32, vectorised
// kernels up to 128, cudaMalloc promises 256). File order makes long runs of
// the arena long runs of a file, so that a window of the arena is filled by one
// read, and any part of the arena (a bucket, one rank's share) is a job of its
// own.

#ifndef LIB_LOAD_PLAN_H_
#define LIB_LOAD_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

inline constexpr uint64_t kTensorAlignment = 256;

// A tensor as its header describes it.
struct SourceTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t file = 0;         // index into LoadSource::paths
  uint64_t file_offset = 0;  // of the first byte, from the file's start
  uint64_t size_bytes = 0;
};

// What to load: files whose headers were read and judged sound.
struct LoadSource {
  std::vector<std::string> paths;
  std::vector<SourceTensor> tensors;
};

struct PlannedTensor {
  SourceTensor source;
  uint64_t arena_offset = 0;
};

struct LoadPlan {
  std::vector<std::string> paths;
  std::vector<PlannedTensor> tensors;  // by file, then offset; so by arena too
  uint64_t arena_bytes = 0;            // a multiple of kTensorAlignment
  uint64_t tensor_bytes = 0;           // of all tensors together
};

// Lays the arena out. InvalidArgument when a tensor names no file, and
// ResourceExhausted when the sizes overflow.
absl::StatusOr<LoadPlan> MakeLoadPlan(LoadSource source);

// A part of one tensor: `size_bytes` from the file go to the arena.
struct Segment {
  uint64_t file_offset = 0;
  uint64_t arena_offset = 0;
  uint64_t size_bytes = 0;
};

// A half-open range of the arena.
struct ArenaRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size_bytes() const { return end - begin; }
  friend bool operator==(const ArenaRange&, const ArenaRange&) = default;
};

// How a piece's bytes are fetched.
enum class ReadPath : uint8_t {
  kCached,   // buffered reads that the page cache answers
  kDirect,   // O_DIRECT, around the page cache
  kNetwork,  // buffered reads that a server answers, many at once
};

absl::string_view ReadPathName(ReadPath path);

// One unit of work: bytes of one file that are contiguous there and, but for
// alignment gaps, in the arena.
struct Piece {
  uint32_t file = 0;
  ReadPath path = ReadPath::kCached;
  uint32_t group = 0;          // the caller's: a bucket, a share
  ArenaRange arena;            // from its first byte to past its last
  uint64_t file_begin = 0;     // of the first segment
  uint64_t file_end = 0;       // of the last
  uint32_t first_segment = 0;  // into PieceList::segments
  uint32_t num_segments = 0;
};

struct PieceList {
  std::vector<Piece> pieces;
  std::vector<Segment> segments;
  uint64_t tensor_bytes = 0;

  absl::Span<const Segment> SegmentsOf(const Piece& piece) const {
    return absl::MakeConstSpan(segments).subspan(piece.first_segment,
                                                 piece.num_segments);
  }
};

// Appends the pieces that fill `range`, in order: none longer than
// `window_bytes` of arena, cut at multiples of it, and none over two files or
// over bytes of a file that no tensor covers. Each gets `group` and `path`.
void CutPieces(const LoadPlan& plan, ArenaRange range, uint64_t window_bytes,
               uint32_t group, ReadPath path, PieceList* list);

}  // namespace firstframe

#endif  // LIB_LOAD_PLAN_H_
