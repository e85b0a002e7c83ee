// Records whose statistics are still being computed, kept in their order.

#ifndef LIB_ACTIVATION_TRACE_QUEUE_H_
#define LIB_ACTIVATION_TRACE_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/activation/activation_tracer.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// An output that was seen: its record is written once its statistics are known.
struct QueuedRecord {
  std::string module;
  std::string label;
  std::optional<int64_t> step;  // when it was seen
  DType dtype = DType::kF32;
  Shape shape;
  // Returns the statistics; nothing while they are on their way, unless `wait`.
  std::function<absl::StatusOr<std::optional<TensorStats>>(bool wait)> poll;
};

// Thread-safe. The file then holds the records in the order of Add(), which is
// the order in which modules finished.
class TraceQueue {
 public:
  // Holds up to `max_pending` records before Add() waits for the oldest. The
  // tracer must outlive the queue.
  explicit TraceQueue(ActivationTracer* tracer, size_t max_pending = 1024)
      : tracer_(tracer), max_pending_(max_pending) {}
  // Drops what Flush() did not write.
  ~TraceQueue() = default;

  // Queues `record` and writes the oldest ones that are ready. Returns the
  // first error of a record written here; it costs that record alone.
  absl::Status Add(QueuedRecord record);
  // Waits for all of them and writes them.
  absl::Status Flush();

 private:
  absl::Status Drain(size_t keep, bool wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ActivationTracer* const tracer_;
  const size_t max_pending_;
  absl::Mutex mutex_;
  std::deque<QueuedRecord> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_QUEUE_H_
