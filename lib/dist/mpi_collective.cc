#include "lib/dist/mpi_collective.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/dist/open_mpi.h"

namespace firstframe {
namespace {

// MPI counts are ints; larger buffers go in pieces of this.
constexpr size_t kMaxPieceBytes = 1 << 30;
constexpr int kFailTag = 7;
constexpr size_t kMaxReasonBytes = 1024;

class MpiCollective final : public Collective {
 public:
  MpiCollective(const OpenMpi* mpi, int rank, int size, bool owns_library,
                OmpiCommunicator* data, OmpiCommunicator* news,
                absl::Duration timeout)
      : Collective(rank, size),
        mpi_(mpi),
        owns_library_(owns_library),
        data_(data),
        news_(news),
        timeout_(timeout) {
    std::memset(reason_, 0, sizeof(reason_));
    const int code = mpi_->Irecv(reason_, kMaxReasonBytes, mpi_->byte,
                                 kOmpiAnySource, kFailTag, news_, &listening_);
    status_ = mpi_->ToStatus(code, "MPI_Irecv");
  }

  ~MpiCollective() override {
    if (!status_.ok() || !requests_.empty()) return;
    // All are here, or Finalize would wait for those that are not.
    if (!Barrier(*this).ok()) return;
    if (listening_ != nullptr) {
      mpi_->Cancel(&listening_);
      int done = 0;
      for (int i = 0; i < 1000 && !done; ++i) {
        mpi_->Test(&listening_, &done, nullptr);
      }
    }
    if (owns_library_) mpi_->Finalize();
  }

  absl::string_view transport() const override { return "mpi"; }
  MemoryKind memory() const override { return MemoryKind::kHost; }

  absl::Status Broadcast(void* data, size_t size_bytes, int root) override {
    FF_RETURN_IF_ERROR(Check());
    for (size_t at = 0; at < size_bytes; at += kMaxPieceBytes) {
      const int count =
          static_cast<int>(std::min(kMaxPieceBytes, size_bytes - at));
      OmpiRequest* request = nullptr;
      const int code = mpi_->Ibcast(static_cast<std::byte*>(data) + at, count,
                                    mpi_->byte, root, data_, &request);
      FF_RETURN_IF_ERROR(Started(code, "MPI_Ibcast", request));
    }
    return absl::OkStatus();
  }

  absl::Status AllGather(void* data, size_t bytes_per_rank) override {
    FF_RETURN_IF_ERROR(Check());
    // Open MPI 4.1 starts no request for nothing, and says it did.
    if (bytes_per_rank == 0) return absl::OkStatus();
    if (bytes_per_rank <= kMaxPieceBytes) {
      // MPI_IN_PLACE is the address 1 in Open MPI.
      const void* const in_place = reinterpret_cast<void*>(1);
      OmpiRequest* request = nullptr;
      const int code = mpi_->Iallgather(in_place, 0, mpi_->byte, data,
                                        static_cast<int>(bytes_per_rank),
                                        mpi_->byte, data_, &request);
      return Started(code, "MPI_Iallgather", request);
    }
    for (int root = 0; root < size(); ++root) {
      FF_RETURN_IF_ERROR(
          Broadcast(static_cast<std::byte*>(data) + root * bytes_per_rank,
                    bytes_per_rank, root));
    }
    return absl::OkStatus();
  }

  absl::Status Wait() override {
    FF_RETURN_IF_ERROR(status_);
    const absl::Time deadline = absl::Now() + timeout_;
    while (!requests_.empty()) {
      size_t kept = 0;
      for (OmpiRequest* request : requests_) {
        int done = 0;
        const int code = mpi_->Test(&request, &done, nullptr);
        if (code != 0) return Break(mpi_->ToStatus(code, "MPI_Test"));
        if (!done) requests_[kept++] = request;
      }
      requests_.resize(kept);
      if (kept == 0) break;
      FF_RETURN_IF_ERROR(Check());
      if (absl::Now() > deadline) {
        return Break(absl::DeadlineExceededError(
            absl::StrCat("waited ", absl::FormatDuration(timeout_), " for ",
                         kept, " operations of ", size(), " ranks")));
      }
      // More ranks than cores must still get on.
      ::sched_yield();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) override {
    // Sizes first, then all messages padded to the longest.
    std::vector<uint64_t> sizes(size());
    sizes[rank()] = mine.size();
    FF_RETURN_IF_ERROR(AllGather(sizes.data(), sizeof(uint64_t)));
    FF_RETURN_IF_ERROR(Wait());
    const uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::string> all(size());
    if (longest == 0) return all;
    std::string padded(longest * size(), '\0');
    std::copy(mine.begin(), mine.end(), padded.begin() + rank() * longest);
    FF_RETURN_IF_ERROR(AllGather(padded.data(), longest));
    FF_RETURN_IF_ERROR(Wait());
    for (int r = 0; r < size(); ++r) {
      all[r] = padded.substr(r * longest, sizes[r]);
    }
    return all;
  }

  void Fail(const absl::Status& status) override {
    if (!status_.ok()) return;
    status_ = absl::AbortedError(
        absl::StrCat("rank ", rank(), " failed: ", status.message()));
    const std::string text(status_.message().substr(0, kMaxReasonBytes - 1));
    std::vector<OmpiRequest*> sending(size(), nullptr);
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      mpi_->Isend(text.data(), static_cast<int>(text.size()), mpi_->byte, r,
                  kFailTag, news_, &sending[r]);
    }
    // Short messages leave at once; one that does not is not waited for long.
    const absl::Time deadline = absl::Now() + absl::Seconds(1);
    for (OmpiRequest*& request : sending) {
      int done = request == nullptr;
      while (!done && absl::Now() < deadline) {
        if (mpi_->Test(&request, &done, nullptr) != 0) break;
      }
    }
  }

  absl::Status Check() override {
    FF_RETURN_IF_ERROR(status_);
    int done = 0;
    const int code = mpi_->Test(&listening_, &done, nullptr);
    if (code != 0) return Break(mpi_->ToStatus(code, "MPI_Test"));
    if (done) status_ = absl::AbortedError(reason_);
    return status_;
  }

 private:
  absl::Status Started(int code, const char* call, OmpiRequest* request) {
    if (code != 0) return Break(mpi_->ToStatus(code, call));
    requests_.push_back(request);
    return absl::OkStatus();
  }

  absl::Status Break(const absl::Status& status) {
    const absl::Status kept = status;
    Fail(kept);
    status_ = kept;
    return kept;
  }

  const OpenMpi* const mpi_;
  const bool owns_library_;
  OmpiCommunicator* const data_;
  OmpiCommunicator* const news_;  // failures only
  const absl::Duration timeout_;
  std::vector<OmpiRequest*> requests_;
  OmpiRequest* listening_ = nullptr;
  char reason_[kMaxReasonBytes];
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> JoinMpiGroup(
    absl::Duration timeout) {
  FF_ASSIGN_OR_RETURN(const OpenMpi* const mpi, OpenMpi::Load());
  int initialized = 0;
  FF_RETURN_IF_ERROR(
      mpi->ToStatus(mpi->Initialized(&initialized), "MPI_Initialized"));
  if (!initialized) {
    FF_RETURN_IF_ERROR(mpi->ToStatus(mpi->Init(nullptr, nullptr), "MPI_Init"));
  }
  mpi->Comm_set_errhandler(mpi->world, mpi->errors_return);
  int rank = 0;
  int size = 0;
  FF_RETURN_IF_ERROR(
      mpi->ToStatus(mpi->Comm_rank(mpi->world, &rank), "MPI_Comm_rank"));
  FF_RETURN_IF_ERROR(
      mpi->ToStatus(mpi->Comm_size(mpi->world, &size), "MPI_Comm_size"));
  // Own communicators, so that no message of others is taken for ours.
  OmpiCommunicator* data = nullptr;
  OmpiCommunicator* news = nullptr;
  for (OmpiCommunicator** out : {&data, &news}) {
    FF_RETURN_IF_ERROR(
        mpi->ToStatus(mpi->Comm_dup(mpi->world, out), "MPI_Comm_dup"));
    mpi->Comm_set_errhandler(*out, mpi->errors_return);
  }
  return std::make_unique<MpiCollective>(mpi, rank, size, !initialized, data,
                                         news, timeout);
}

}  // namespace firstframe
