// MapToHost: the page cache of a checkpoint as a frozen module's host copy.

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/file_reader.h"
#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/load/memory_budget.h"
#include "lib/offload/host_tier.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// Reads what the page cache lacks and enters all pages of a mapping, on a few
// threads (sixteen took four times as long as four: they share locks). A hint:
// what it leaves (kernels before 5.14, a file that is cut meanwhile),
// registering does, or says why it cannot.
void PopulateForReading(std::byte* data, uint64_t size_bytes, int threads) {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ
  constexpr uint64_t kPart = 16 << 20;
  std::atomic<uint64_t> next = 0;
  const auto run = [&](int) {
    while (true) {
      const uint64_t at = next.fetch_add(kPart);
      if (at >= size_bytes) return;
      (void)::madvise(data + at, std::min(kPart, size_bytes - at),
                      kPopulateRead);
    }
  };
  RunOnThreads(threads, run);
}

// A file's mapping, pinned for as long as it lives; without a runtime not.
class PinnedFile {
 public:
  static absl::StatusOr<PinnedFile> Map(const CheckpointFile& file,
                                        const PinOptions& options,
                                        cuda::Runtime* runtime) {
    FF_ASSIGN_OR_RETURN(auto reader, FileReader::Open(file.path));
    if (reader->identity() != file.identity) {
      return absl::FailedPreconditionError(absl::StrCat(
          file.path, ": the file changed since its header was read"));
    }
    if (IsOnNetworkFileSystem(reader->fd())) {
      return absl::UnavailableError(absl::StrCat(
          file.path,
          ": found a network file system, expected a local one to map"));
    }
    PinnedFile result;
    result.size_bytes_ = reader->size_bytes();
    void* const data = ::mmap(nullptr, result.size_bytes_, PROT_READ,
                              MAP_SHARED, reader->fd(), 0);
    if (data == MAP_FAILED) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", file.path));
    }
    result.data_ = static_cast<std::byte*>(data);
    result.reader_ = std::move(reader);
    if (runtime == nullptr) return result;
    const int64_t start = MonotonicClock::Get().NowNs();
    PopulateForReading(result.data_, result.size_bytes_,
                       std::min(options.threads, 4));
    result.populate_ns_ = MonotonicClock::Get().NowNs() - start;
    result.region_ = PinnedRegion::Pin(result.data_, result.size_bytes_,
                                       /*read_only=*/true, options, *runtime);
    if (result.region_.pinned_bytes() < result.size_bytes_) {
      return absl::UnavailableError(
          absl::StrCat(file.path, ": ", result.region_.note()));
    }
    return result;
  }

  PinnedFile(PinnedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(other.size_bytes_),
        populate_ns_(other.populate_ns_),
        region_(std::move(other.region_)),
        reader_(std::move(other.reader_)) {}
  PinnedFile& operator=(PinnedFile&&) = delete;
  ~PinnedFile() {
    region_ = PinnedRegion();  // unpinned before it is unmapped
    if (data_ != nullptr) ::munmap(data_, size_bytes_);
  }

  std::byte* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }
  int64_t populate_ns() const { return populate_ns_; }
  const PinnedRegion& region() const { return region_; }
  absl::Status CheckUnchanged() const { return reader_->CheckUnchanged(); }

 private:
  PinnedFile() = default;

  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
  int64_t populate_ns_ = 0;
  PinnedRegion region_;
  std::unique_ptr<FileReader> reader_;
};

}  // namespace

absl::StatusOr<HostModule> MapToHost(const Checkpoint& checkpoint,
                                     const PinOptions& options,
                                     cuda::Runtime* runtime) {
  const int64_t start = MonotonicClock::Get().NowNs();
  PinOptions left = WithinBudget(options, ReadMemoryBudget());
  left.pin = true;  // without it the strategy means nothing
  auto files = std::make_shared<std::vector<PinnedFile>>();
  HostModule result;
  for (const CheckpointFile& file : checkpoint.files()) {
    FF_ASSIGN_OR_RETURN(PinnedFile mapped,
                        PinnedFile::Map(file, left, runtime));
    left.budget_bytes -= std::min(left.budget_bytes, mapped.size_bytes());
    result.tier.mapped_bytes += mapped.size_bytes();
    result.tier.populate_ns += mapped.populate_ns();
    for (const std::byte* cut : mapped.region().cuts()) {
      result.tier.cuts.push_back(cut);
    }
    // Files may come to lie side by side; a copy is of one file.
    result.tier.cuts.push_back(mapped.data());
    result.tier.cuts.push_back(mapped.data() + mapped.size_bytes());
    files->push_back(std::move(mapped));
  }
  std::sort(result.tier.cuts.begin(), result.tier.cuts.end());
  std::vector<OffloadTensor> tensors;
  for (const CheckpointEntry entry : checkpoint.entries()) {
    const SafetensorsTensor& tensor = checkpoint.tensor(entry);
    tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, tensor.size_bytes(),
         (*files)[entry.file].data() + checkpoint.file_offset(entry),
         kHostMemory, files});
  }
  result.module = std::make_unique<OffloadModule>(std::move(tensors));
  result.tier.ranges = FindStorageRanges(*result.module);
  result.tier.check_unchanged = [files]() -> absl::Status {
    for (const PinnedFile& file : *files) {
      FF_RETURN_IF_ERROR(file.CheckUnchanged());
    }
    return absl::OkStatus();
  };
  result.tier.storage = files;
  result.tier.pin_ns =
      MonotonicClock::Get().NowNs() - start - result.tier.populate_ns;
  return result;
}

}  // namespace firstframe
