// Brings frames to the host while later ones are computed.

#ifndef LIB_WAN_VAE_CUDA_OUTPUT_DRAIN_H_
#define LIB_WAN_VAE_CUDA_OUTPUT_DRAIN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/event.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"

namespace firstframe::cuda {

// A thread that copies finished pieces of a run's output from a few device
// buffers to the host. The host's new pages, and what copies into pageable
// memory cost, are then hidden behind the device's work, and the device never
// holds the whole output. One object serves one run; all calls come from one
// thread.
class OutputDrain {
 public:
  struct Piece {
    const float* from = nullptr;  // device memory
    int64_t to = 0;               // first element of the output
    int64_t count = 0;
  };

  // Resizes `output` to `count` on the new thread. Nobody else may touch it
  // until End. Buffers are numbered from 0 to `buffers` - 1. `stream` of
  // `device` carries the copies and outlives the object.
  OutputDrain(int device, const Stream& stream, int buffers, int64_t count,
              std::vector<float>* output, Runtime& runtime = GetRuntime());
  // Ends a run that failed: waits for what is being copied.
  ~OutputDrain();
  OutputDrain(const OutputDrain&) = delete;
  OutputDrain& operator=(const OutputDrain&) = delete;

  // Waits until `buffer` may be overwritten. Returns an error of the thread.
  absl::Status Await(int buffer);
  // Copies `pieces` of `buffer` once what `after` holds now is done.
  absl::Status Push(int buffer, std::vector<Piece> pieces, const Stream& after);
  // Waits until everything has arrived.
  absl::Status End();

 private:
  struct Item {
    int buffer = 0;
    std::vector<Piece> pieces;
    Event ready;
  };

  void Run();
  absl::Status Copy(const Item& item);
  void Stop();

  Runtime& runtime_;
  const int device_;
  const Stream& stream_;
  const int64_t count_;
  std::vector<float>* const output_;
  absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> is_held_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // no more items come
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_OUTPUT_DRAIN_H_
