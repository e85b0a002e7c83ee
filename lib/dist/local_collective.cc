#include "lib/dist/local_collective.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Where the threads meet. One round collects every rank's message; the last to
// arrive publishes it and opens the next.
class Hub {
 public:
  Hub(int size, absl::Duration timeout)
      : timeout_(timeout), arriving_(size), left_(size, false) {}

  absl::StatusOr<std::vector<std::string>> Meet(int rank,
                                                absl::string_view mine) {
    const absl::MutexLock lock(&mutex_);
    FF_RETURN_IF_ERROR(status_);
    arriving_[rank] = std::string(mine);
    const int64_t round = round_;
    if (++num_arrived_ == static_cast<int>(arriving_.size())) {
      published_ = arriving_;
      num_arrived_ = 0;
      ++round_;
      changed_.SignalAll();
      return published_;
    }
    const absl::Time deadline = absl::Now() + timeout_;
    while (round_ == round && status_.ok()) {
      if (changed_.WaitWithDeadline(&mutex_, deadline) && round_ == round &&
          status_.ok()) {
        status_ = absl::DeadlineExceededError(
            absl::StrCat("waited ", absl::FormatDuration(timeout_), " for ",
                         arriving_.size() - num_arrived_, " of ",
                         arriving_.size(), " ranks"));
        changed_.SignalAll();
      }
    }
    // A round that was complete before the failure is still good here: its
    // members may not differ in what they saw.
    if (round_ != round) return published_;
    return status_;
  }

  void Fail(int rank, const absl::Status& status) {
    const absl::MutexLock lock(&mutex_);
    if (status_.ok()) {
      status_ = absl::AbortedError(
          absl::StrCat("rank ", rank, " failed: ", status.message()));
    }
    changed_.SignalAll();
  }

  // A rank that leaves while another still waits for it has failed.
  void Leave(int rank) {
    const absl::MutexLock lock(&mutex_);
    left_[rank] = true;
    if (num_arrived_ > 0 && status_.ok()) {
      status_ = absl::AbortedError(absl::StrCat("rank ", rank, " left"));
    }
    changed_.SignalAll();
  }

  absl::Status status() {
    const absl::MutexLock lock(&mutex_);
    return status_;
  }

  // Fails a meeting that can never be complete.
  absl::Status CheckNobodyLeft() {
    const absl::MutexLock lock(&mutex_);
    for (size_t rank = 0; rank < left_.size() && status_.ok(); ++rank) {
      if (left_[rank]) {
        status_ = absl::AbortedError(absl::StrCat("rank ", rank, " left"));
      }
    }
    return status_;
  }

 private:
  const absl::Duration timeout_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Status status_;
  int64_t round_ = 0;
  int num_arrived_ = 0;
  std::vector<std::string> arriving_;
  std::vector<std::string> published_;
  std::vector<bool> left_;
};

class LocalCollective final : public Collective {
 public:
  LocalCollective(int rank, int size, std::shared_ptr<Hub> hub)
      : Collective(rank, size), hub_(std::move(hub)) {}
  ~LocalCollective() override { hub_->Leave(rank()); }

  absl::string_view transport() const override { return "local"; }
  MemoryKind memory() const override { return MemoryKind::kHost; }

  absl::Status Broadcast(void* data, size_t size_bytes, int root) override {
    FF_CHECK(root >= 0 && root < size());
    FF_ASSIGN_OR_RETURN(const std::vector<void*> all, ExchangePointers(data));
    if (rank() != root && size_bytes > 0) {
      std::memcpy(data, all[root], size_bytes);
    }
    return Exchange("").status();  // the root's bytes are still being read
  }

  absl::Status AllGather(void* data, size_t bytes_per_rank) override {
    FF_ASSIGN_OR_RETURN(const std::vector<void*> all, ExchangePointers(data));
    for (int r = 0; r < size() && bytes_per_rank > 0; ++r) {
      if (r == rank()) continue;
      std::memcpy(static_cast<std::byte*>(data) + r * bytes_per_rank,
                  static_cast<std::byte*>(all[r]) + r * bytes_per_rank,
                  bytes_per_rank);
    }
    return Exchange("").status();
  }

  absl::Status Wait() override { return hub_->status(); }

  absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) override {
    FF_RETURN_IF_ERROR(hub_->CheckNobodyLeft());
    return hub_->Meet(rank(), mine);
  }

  void Fail(const absl::Status& status) override { hub_->Fail(rank(), status); }
  absl::Status Check() override { return hub_->status(); }

 private:
  absl::StatusOr<std::vector<void*>> ExchangePointers(void* mine) {
    FF_ASSIGN_OR_RETURN(
        const std::vector<std::string> all,
        Exchange(absl::string_view(reinterpret_cast<const char*>(&mine),
                                   sizeof(mine))));
    std::vector<void*> pointers(all.size());
    for (size_t r = 0; r < all.size(); ++r) {
      std::memcpy(&pointers[r], all[r].data(), sizeof(void*));
    }
    return pointers;
  }

  const std::shared_ptr<Hub> hub_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> MakeLocalGroup(
    int size, absl::Duration timeout) {
  const auto hub = std::make_shared<Hub>(size, timeout);
  std::vector<std::unique_ptr<Collective>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<LocalCollective>(rank, size, hub));
  }
  return group;
}

}  // namespace firstframe
