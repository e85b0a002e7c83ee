#include "lib/load/registered_load.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// One registration of 512 GiB fails on driver 580 (LMCache issue 5177).
constexpr uint64_t kMaxRegistrationBytes = uint64_t{64} << 30;
constexpr size_t kCopiesPerBatch = 1024;

// A file mapping that is pinned in pieces for as long as it lives.
class PinnedMapping {
 public:
  static absl::StatusOr<PinnedMapping> Create(const OpenedFile& file,
                                              cuda::Runtime& runtime) {
    const DataFile& data = file.buffered;
    if (file.file_system.kind == FileSystemKind::kNetwork) {
      return absl::UnavailableError(absl::StrCat(data.path(), ": files on ",
                                                 file.file_system.type,
                                                 " are not mapped"));
    }
    PinnedMapping mapping;
    mapping.size_bytes_ = data.size_bytes();
    void* base = ::mmap(nullptr, data.size_bytes(), PROT_READ,
                        MAP_SHARED | MAP_POPULATE, data.fd(), 0);
    if (base == MAP_FAILED) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot map ", data.path()));
    }
    mapping.base_ = static_cast<std::byte*>(base);
    for (uint64_t at = 0; at < data.size_bytes(); at += kMaxRegistrationBytes) {
      absl::StatusOr<cuda::HostRegistration> piece =
          cuda::HostRegistration::Register(
              mapping.base_ + at,
              std::min(kMaxRegistrationBytes, data.size_bytes() - at),
              /*read_only=*/true, runtime);
      if (!piece.ok()) {
        return absl::UnavailableError(absl::StrCat(
            data.path(),
            ": the mapping cannot be pinned: ", piece.status().message()));
      }
      mapping.pieces_.push_back(*std::move(piece));
    }
    return mapping;
  }

  PinnedMapping(PinnedMapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        size_bytes_(other.size_bytes_),
        pieces_(std::move(other.pieces_)) {}
  PinnedMapping& operator=(PinnedMapping&&) = delete;
  ~PinnedMapping() {
    pieces_.clear();
    if (base_ != nullptr) ::munmap(base_, size_bytes_);
  }

  const std::byte* data() const { return base_; }

 private:
  PinnedMapping() = default;

  std::byte* base_ = nullptr;
  uint64_t size_bytes_ = 0;
  std::vector<cuda::HostRegistration> pieces_;
};

}  // namespace

absl::StatusOr<RegisteredReport> LoadRegistered(const LoadPlan& plan,
                                                const OpenedSources& sources,
                                                std::byte* arena,
                                                const cuda::Stream& stream,
                                                uint64_t pin_budget_bytes) {
  const Clock& clock = MonotonicClock::Get();
  uint64_t total = 0;
  for (const OpenedFile& file : sources.files) {
    total += file.buffered.size_bytes();
  }
  if (total > pin_budget_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pinning ", total, " bytes of files exceeds the budget of ",
        pin_budget_bytes));
  }
  RegisteredReport report;
  const int64_t start = clock.NowNs();
  std::vector<PinnedMapping> mappings;
  for (const OpenedFile& file : sources.files) {
    FF_RETURN_IF_ERROR(file.buffered.CheckUnchanged());
    FF_ASSIGN_OR_RETURN(PinnedMapping mapping,
                        PinnedMapping::Create(file, stream.runtime()));
    mappings.push_back(std::move(mapping));
  }
  const int64_t pinned = clock.NowNs();
  report.pin_ns = pinned - start;
  std::vector<cuda::Copy> batch;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    if (tensor.source.size_bytes > 0) {
      batch.push_back(
          {arena + tensor.arena_offset,
           mappings[tensor.source.file].data() + tensor.source.file_offset,
           static_cast<size_t>(tensor.source.size_bytes)});
    }
    if (batch.size() == kCopiesPerBatch ||
        (i + 1 == plan.tensors.size() && !batch.empty())) {
      FF_RETURN_IF_ERROR(stream.CopyBatchAsync(batch));
      batch.clear();
    }
  }
  FF_RETURN_IF_ERROR(stream.Synchronize());
  const int64_t copied = clock.NowNs();
  report.copy_ns = copied - pinned;
  FF_RETURN_IF_ERROR(sources.CheckUnchanged());
  mappings.clear();
  report.unpin_ns = clock.NowNs() - copied;
  return report;
}

}  // namespace firstframe
