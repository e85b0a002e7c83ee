// Parameters of any type to the device, as float32.

#ifndef LIB_WAN_VAE_CUDA_PINNED_UPLOADER_H_
#define LIB_WAN_VAE_CUDA_PINNED_UPLOADER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/tensor/tensor.h"

namespace firstframe::cuda {

// Copies host memory to the device through a ring of pinned stages, so that the
// next piece is read while the last one travels. Thread-safe.
class PinnedUploader {
 public:
  static absl::StatusOr<std::unique_ptr<PinnedUploader>> Create();

  // Converts `value` to float32 at `to`. Returns once `value` has been read.
  absl::Status Upload(const TensorView& value, float* to);
  // Waits until everything has arrived.
  absl::Status Finish();

 private:
  struct Stage {
    PinnedBuffer buffer;
    Event done;
  };
  explicit PinnedUploader(Stream stream) : stream_(std::move(stream)) {}
  absl::StatusOr<int> TakeStage();
  void GiveBack(int stage);

  const Stream stream_;
  std::vector<Stage> stages_;
  absl::Mutex mutex_;
  std::vector<int> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_PINNED_UPLOADER_H_
