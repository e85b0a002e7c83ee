#include "lib/wan_vae/cuda/output_drain.h"

#include <sys/mman.h>

#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe::cuda {
namespace {

// Resizes `values`; where the system grants it, the new memory comes in a few
// large page faults instead of many small ones.
void GrowOnHugePages(std::vector<float>& values, int64_t count) {
  constexpr uintptr_t kHugePage = 2 << 20;
  values.reserve(count);
  const uintptr_t data = reinterpret_cast<uintptr_t>(values.data());
  const uintptr_t begin = (data + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (data + count * sizeof(float)) / kHugePage * kHugePage;
  if (begin < end) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  values.resize(count);
}

}  // namespace

OutputDrain::OutputDrain(int device, const Stream& stream, int buffers,
                         int64_t count, std::vector<float>* output,
                         Runtime& runtime)
    : runtime_(runtime),
      device_(device),
      stream_(stream),
      count_(count),
      output_(output),
      is_held_(buffers),
      thread_([this] { Run(); }) {}

OutputDrain::~OutputDrain() {
  {
    const absl::MutexLock lock(&mutex_);
    items_.clear();
  }
  Stop();
}

void OutputDrain::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    is_over_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status OutputDrain::Await(int buffer) {
  const absl::MutexLock lock(&mutex_);
  const auto is_free = [this, buffer]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_held_[buffer] || !status_.ok();
  };
  mutex_.Await(absl::Condition(&is_free));
  return status_;
}

absl::Status OutputDrain::Push(int buffer, std::vector<Piece> pieces,
                               const Stream& after) {
  FF_ASSIGN_OR_RETURN(Event ready,
                      Event::Create(EventKind::kOrdering, runtime_));
  FF_RETURN_IF_ERROR(ready.Record(after.handle()));
  const absl::MutexLock lock(&mutex_);
  FF_RETURN_IF_ERROR(status_);
  is_held_[buffer] = true;
  items_.push_back({buffer, std::move(pieces), std::move(ready)});
  return absl::OkStatus();
}

absl::Status OutputDrain::End() {
  Stop();
  const absl::MutexLock lock(&mutex_);
  return status_;
}

absl::Status OutputDrain::Copy(const Item& item) {
  // Not left to the stream: a copy into pageable memory may hold up the thread
  // that launches, inside the driver, until it begins.
  FF_RETURN_IF_ERROR(item.ready.Synchronize());
  for (const Piece& piece : item.pieces) {
    FF_RETURN_IF_ERROR(stream_.CopyAsync(output_->data() + piece.to, piece.from,
                                         piece.count * sizeof(float)));
  }
  return stream_.Synchronize();
}

void OutputDrain::Run() {
  absl::Status status = runtime_.SetDevice(device_);
  try {
    GrowOnHugePages(*output_, count_);
  } catch (const std::exception&) {  // bad_alloc, length_error
    status = absl::ResourceExhaustedError(absl::StrCat(
        "no memory for an output of ", count_ * sizeof(float), " bytes"));
  }
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !items_.empty() || is_over_;
  };
  while (status.ok()) {
    std::optional<Item> item;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (items_.empty()) return;
      item.emplace(std::move(items_.front()));
      items_.pop_front();
    }
    status = Copy(*item);
    const absl::MutexLock lock(&mutex_);
    status_ = status;
    is_held_[item->buffer] = false;
  }
  const absl::MutexLock lock(&mutex_);
  status_ = status;
}

}  // namespace firstframe::cuda
