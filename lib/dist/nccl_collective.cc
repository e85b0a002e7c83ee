#include "lib/dist/nccl_collective.h"

#include <sched.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/dist/nccl.h"

namespace firstframe {
namespace {

class NcclCollective final : public Collective {
 public:
  NcclCollective(Nccl nccl, std::unique_ptr<Collective> control,
                 const NcclOptions& options, cuda::Event event)
      : Collective(control->rank(), control->size()),
        nccl_(std::move(nccl)),
        control_(std::move(control)),
        options_(options),
        event_(std::move(event)) {}

  ~NcclCollective() override {
    if (communicator_ == nullptr) return;
    if (status_.ok() && Wait().ok() &&
        nccl_.ToStatus(nccl_.CommFinalize(communicator_), "").ok() &&
        Settle("ncclCommFinalize").ok()) {
      nccl_.CommDestroy(communicator_);
    } else if (communicator_ != nullptr) {
      nccl_.CommAbort(communicator_);
    }
  }

  // Connects all ranks.
  absl::Status Connect() {
    NcclUniqueId id = {};
    absl::Status mine;
    if (rank() == 0) {
      mine = nccl_.ToStatus(nccl_.GetUniqueId(&id), "ncclGetUniqueId");
    }
    FF_RETURN_IF_ERROR(Agree(*control_, mine));
    FF_ASSIGN_OR_RETURN(
        const std::vector<std::string> ids,
        control_->Exchange(absl::string_view(id.internal, sizeof(id))));
    std::memcpy(id.internal, ids[0].data(), sizeof(id));
    NcclConfig config;
    config.blocking = 0;
    FF_RETURN_IF_ERROR(options_.runtime->SetDevice(options_.device));
    const int result =
        nccl_.CommInitRankConfig(&communicator_, size(), id, rank(), &config);
    FF_RETURN_IF_ERROR(Began(result, "ncclCommInitRankConfig"));
    return Agree(*control_, absl::OkStatus());
  }

  absl::string_view transport() const override { return "nccl"; }
  MemoryKind memory() const override { return MemoryKind::kDevice; }

  absl::Status Broadcast(void* data, size_t size_bytes, int root) override {
    FF_RETURN_IF_ERROR(Check());
    if (size_bytes == 0) return absl::OkStatus();
    const int result = nccl_.Broadcast(data, data, size_bytes, kNcclUint8, root,
                                       communicator_, options_.stream);
    return Began(result, "ncclBroadcast");
  }

  absl::Status AllGather(void* data, size_t bytes_per_rank) override {
    FF_RETURN_IF_ERROR(Check());
    if (bytes_per_rank == 0) return absl::OkStatus();
    const int result = nccl_.AllGather(
        static_cast<std::byte*>(data) + rank() * bytes_per_rank, data,
        bytes_per_rank, kNcclUint8, communicator_, options_.stream);
    return Began(result, "ncclAllGather");
  }

  absl::Status Wait() override {
    FF_RETURN_IF_ERROR(status_);
    FF_RETURN_IF_ERROR(event_.Record(options_.stream));
    return Poll("the operations of the group",
                [this] { return event_.IsComplete(); });
  }

  absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) override {
    FF_RETURN_IF_ERROR(status_);
    absl::StatusOr<std::vector<std::string>> all = control_->Exchange(mine);
    if (!all.ok()) return Break(all.status());
    return all;
  }

  void Fail(const absl::Status& status) override {
    control_->Fail(status);
    (void)Break(absl::AbortedError(
        absl::StrCat("rank ", rank(), " failed: ", status.message())));
  }

  absl::Status Check() override {
    FF_RETURN_IF_ERROR(status_);
    if (absl::Status news = control_->Check(); !news.ok()) return Break(news);
    return absl::OkStatus();
  }

 private:
  // Waits until `is_done` says so, an error is known, or the time is over.
  absl::Status Poll(absl::string_view what,
                    absl::FunctionRef<absl::StatusOr<bool>()> is_done) {
    const absl::Time deadline = absl::Now() + options_.timeout;
    for (int64_t turn = 0;; ++turn) {
      absl::StatusOr<bool> done = is_done();
      if (!done.ok()) return Break(done.status());
      if (*done) return absl::OkStatus();
      // The rest costs system calls; look now and then.
      if (turn % 64 != 63) continue;
      int result = kNcclSuccess;
      if (communicator_ != nullptr) {
        nccl_.CommGetAsyncError(communicator_, &result);
      }
      if (absl::Status s = nccl_.ToStatus(result, "NCCL"); !s.ok()) {
        return Break(s);
      }
      FF_RETURN_IF_ERROR(Check());
      if (absl::Now() > deadline) {
        return Break(absl::DeadlineExceededError(absl::StrCat(
            "waited ", absl::FormatDuration(options_.timeout), " for ", what)));
      }
      ::sched_yield();
    }
  }

  // A non-blocking communicator takes one call at a time: waits until the last
  // has been taken in (not until it is complete on the device).
  absl::Status Settle(const char* call) {
    return Poll(call, [&]() -> absl::StatusOr<bool> {
      int result = kNcclSuccess;
      const int rc = nccl_.CommGetAsyncError(communicator_, &result);
      FF_RETURN_IF_ERROR(nccl_.ToStatus(rc, call));
      FF_RETURN_IF_ERROR(nccl_.ToStatus(result, call));
      return result == kNcclSuccess;
    });
  }

  absl::Status Began(int result, const char* call) {
    if (absl::Status s = nccl_.ToStatus(result, call); !s.ok()) return Break(s);
    return result == kNcclInProgress ? Settle(call) : absl::OkStatus();
  }

  // Gives up: tells the others, and ends kernels that wait for them.
  absl::Status Break(const absl::Status& status) {
    if (!status_.ok()) return status_;
    status_ = status;
    control_->Fail(status);
    if (communicator_ != nullptr) {
      nccl_.CommAbort(std::exchange(communicator_, nullptr));
    }
    return status_;
  }

  const Nccl nccl_;
  const std::unique_ptr<Collective> control_;
  const NcclOptions options_;
  cuda::Event event_;
  NcclCommunicator* communicator_ = nullptr;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> JoinNcclGroup(
    std::unique_ptr<Collective> control, const NcclOptions& options) {
  // A rank without NCCL must not leave the others waiting for it.
  absl::StatusOr<Nccl> nccl = Nccl::Load(options.search);
  FF_RETURN_IF_ERROR(Agree(*control, nccl.status()));
  absl::Status device = options.runtime->SetDevice(options.device);
  FF_RETURN_IF_ERROR(Agree(*control, device));
  FF_ASSIGN_OR_RETURN(
      cuda::Event event,
      cuda::Event::Create(cuda::EventKind::kOrdering, *options.runtime));
  auto group = std::make_unique<NcclCollective>(
      *std::move(nccl), std::move(control), options, std::move(event));
  FF_RETURN_IF_ERROR(group->Connect());
  return group;
}

}  // namespace firstframe
