#include "lib/activation/trace_queue.h"

#include <utility>

#include "lib/activation/trace_step.h"
#include "lib/base/status_macros.h"

namespace firstframe {

absl::Status TraceQueue::Add(QueuedRecord record) {
  absl::MutexLock lock(&mutex_);
  records_.push_back(std::move(record));
  absl::Status status = Drain(max_pending_, /*wait=*/true);
  status.Update(Drain(0, /*wait=*/false));
  return status;
}

absl::Status TraceQueue::Flush() {
  absl::MutexLock lock(&mutex_);
  return Drain(0, /*wait=*/true);
}

absl::Status TraceQueue::Drain(size_t keep, bool wait) {
  absl::Status first;
  while (records_.size() > keep) {
    QueuedRecord& record = records_.front();
    const auto values = record.poll(wait);
    if (values.ok() && !values->has_value()) break;
    if (values.ok()) {
      const TraceStep step(record.step);
      first.Update(tracer_->RecordStats(record.module, record.label, **values,
                                        record.dtype, record.shape));
    } else {
      first.Update(Annotate(values.status(), record.module));
    }
    records_.pop_front();
  }
  return first;
}

}  // namespace firstframe
