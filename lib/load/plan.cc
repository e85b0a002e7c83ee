#include "lib/load/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/checked_math.h"

namespace firstframe {

absl::string_view ReadPathName(ReadPath path) {
  switch (path) {
    case ReadPath::kCached:
      return "cached";
    case ReadPath::kDirect:
      return "direct";
    case ReadPath::kNetwork:
      return "network";
  }
  return "cached";
}

absl::StatusOr<LoadPlan> MakeLoadPlan(LoadSource source) {
  LoadPlan plan;
  plan.paths = std::move(source.paths);
  plan.tensors.reserve(source.tensors.size());
  for (SourceTensor& tensor : source.tensors) {
    if (tensor.file >= plan.paths.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "': file ", tensor.file, " of ",
                       plan.paths.size()));
    }
    PlannedTensor planned;
    planned.source = std::move(tensor);
    plan.tensors.push_back(std::move(planned));
  }
  std::stable_sort(plan.tensors.begin(), plan.tensors.end(),
                   [](const PlannedTensor& a, const PlannedTensor& b) {
                     return std::pair(a.source.file, a.source.file_offset) <
                            std::pair(b.source.file, b.source.file_offset);
                   });
  for (PlannedTensor& tensor : plan.tensors) {
    tensor.arena_offset = plan.arena_bytes;
    const auto end = CheckedAdd(plan.arena_bytes, tensor.source.size_bytes);
    const auto aligned =
        end ? CheckedAlignUp(*end, kTensorAlignment) : std::nullopt;
    if (!aligned) {
      return absl::ResourceExhaustedError(
          absl::StrCat("tensor '", tensor.source.name,
                       "': the checkpoint's size overflows 64 bits"));
    }
    plan.arena_bytes = *aligned;
    plan.tensor_bytes += tensor.source.size_bytes;
  }
  return plan;
}

void CutPieces(const LoadPlan& plan, ArenaRange range, uint64_t window_bytes,
               uint32_t group, ReadPath path, PieceList* list) {
  FF_CHECK(window_bytes > 0);
  // The first tensor that ends after the range begins.
  auto tensor = std::partition_point(
      plan.tensors.begin(), plan.tensors.end(), [&](const PlannedTensor& t) {
        return t.arena_offset + t.source.size_bytes <= range.begin;
      });
  Piece* open = nullptr;  // the piece that the next segment may join
  for (; tensor != plan.tensors.end() && tensor->arena_offset < range.end;
       ++tensor) {
    const SourceTensor& source = tensor->source;
    uint64_t at = std::max(tensor->arena_offset, range.begin);
    const uint64_t end =
        std::min(tensor->arena_offset + source.size_bytes, range.end);
    while (at < end) {
      const uint64_t window_end = (at / window_bytes + 1) * window_bytes;
      const uint64_t size = std::min(end, window_end) - at;
      const uint64_t file_offset =
          source.file_offset + (at - tensor->arena_offset);
      if (open == nullptr || open->file != source.file ||
          open->file_end != file_offset ||
          open->arena.begin / window_bytes != at / window_bytes) {
        Piece piece;
        piece.file = source.file;
        piece.path = path;
        piece.group = group;
        piece.arena = {at, at};
        piece.file_begin = file_offset;
        piece.first_segment = static_cast<uint32_t>(list->segments.size());
        list->pieces.push_back(piece);
        open = &list->pieces.back();
      }
      list->segments.push_back({file_offset, at, size});
      list->tensor_bytes += size;
      ++open->num_segments;
      open->file_end = file_offset + size;
      open->arena.end = at + size;
      at += size;
    }
  }
}

}  // namespace firstframe
