#include "lib/wan_vae/cuda/pinned_uploader.h"

#include <algorithm>
#include <cstring>

#include "lib/base/status_macros.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/dtype.h"

namespace firstframe::cuda {
namespace {

constexpr int kStages = 4;
constexpr int64_t kStageBytes = 8 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedUploader>> PinnedUploader::Create() {
  FF_ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  std::unique_ptr<PinnedUploader> uploader(
      new PinnedUploader(std::move(stream)));
  for (int i = 0; i < kStages; ++i) {
    FF_ASSIGN_OR_RETURN(PinnedBuffer buffer,
                        PinnedBuffer::Allocate(kStageBytes));
    FF_ASSIGN_OR_RETURN(Event done, Event::Create(EventKind::kOrdering));
    uploader->stages_.push_back({std::move(buffer), std::move(done)});
    uploader->free_.push_back(i);
  }
  return uploader;
}

absl::StatusOr<int> PinnedUploader::TakeStage() {
  int stage = -1;
  {
    absl::MutexLock lock(&mutex_);
    const auto any_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !free_.empty();
    };
    mutex_.Await(absl::Condition(&any_free));
    stage = free_.front();
    free_.erase(free_.begin());
  }
  if (absl::Status status = stages_[stage].done.Synchronize(); !status.ok()) {
    GiveBack(stage);
    return status;
  }
  return stage;
}

void PinnedUploader::GiveBack(int stage) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(stage);
}

absl::Status PinnedUploader::Upload(const TensorView& value, float* to) {
  const int64_t element = DTypeBits(value.dtype) / 8;
  const int64_t count = static_cast<int64_t>(value.bytes.size()) / element;
  const int64_t piece = kStageBytes / 4;  // elements, as float32
  for (int64_t first = 0; first < count; first += piece) {
    const int64_t size = std::min(piece, count - first);
    FF_ASSIGN_OR_RETURN(const int index, TakeStage());
    Stage& stage = stages_[index];
    const absl::Span<const std::byte> from =
        value.bytes.subspan(first * element, size * element);
    float* const staged = reinterpret_cast<float*>(stage.buffer.data());
    absl::Status status;
    if (value.dtype == DType::kF32) {
      std::memcpy(staged, from.data(), from.size());
    } else {
      status = ConvertToFloat(value.dtype, from, absl::MakeSpan(staged, size));
    }
    if (status.ok()) status = stream_.CopyAsync(to + first, staged, 4 * size);
    if (status.ok()) status = stage.done.Record(stream_.handle());
    GiveBack(index);
    FF_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status PinnedUploader::Finish() { return stream_.Synchronize(); }

}  // namespace firstframe::cuda
