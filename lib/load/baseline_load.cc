#include "lib/load/baseline_load.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/sigbus_guard.h"
#include "lib/base/status_macros.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr uint64_t kScratchBytes = 256 << 10;

int64_t Now() { return MonotonicClock::Get().NowNs(); }

// One file mapped for reading, or read into a buffer where mapping is unwise.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Map(const OpenedFile& file) {
    MappedFile mapped(&file.buffered);
    if (file.file_system.kind == FileSystemKind::kNetwork ||
        file.buffered.size_bytes() == 0) {
      return mapped;
    }
    void* base = ::mmap(nullptr, file.buffered.size_bytes(), PROT_READ,
                        MAP_SHARED, file.buffered.fd(), 0);
    if (base == MAP_FAILED) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot map ", file.buffered.path()));
    }
    mapped.base_ = static_cast<const std::byte*>(base);
    return mapped;
  }

  MappedFile(MappedFile&& other) noexcept
      : file_(other.file_),
        base_(std::exchange(other.base_, nullptr)),
        buffer_(std::move(other.buffer_)) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (base_ != nullptr) {
      ::munmap(const_cast<std::byte*>(base_), file_->size_bytes());
    }
  }

  // Copies into `target`; a file that was cut is an error, not a SIGBUS.
  absl::Status Copy(uint64_t offset, absl::Span<std::byte> target) const {
    if (base_ == nullptr) return file_->Read(offset, target);
    if (CopyFromMapping(target.data(), base_ + offset, target.size())) {
      return absl::OkStatus();
    }
    return file_->Read(offset, target);  // says what is wrong
  }

  // Returns host memory that holds the range: the mapping itself, or a buffer
  // that the next call overwrites.
  absl::StatusOr<const std::byte*> View(uint64_t offset, uint64_t size) {
    if (base_ != nullptr) {
      // The driver reads the mapping; it must not run into missing pages.
      FF_RETURN_IF_ERROR(file_->CheckUnchanged());
      return base_ + offset;
    }
    buffer_.resize(std::max<size_t>(buffer_.size(), size));
    FF_RETURN_IF_ERROR(
        file_->Read(offset, absl::MakeSpan(buffer_.data(), size)));
    return buffer_.data();
  }

 private:
  explicit MappedFile(const DataFile* file) : file_(file) {}

  const DataFile* file_;
  const std::byte* base_ = nullptr;
  std::vector<std::byte> buffer_;
};

absl::StatusOr<std::vector<MappedFile>> MapAll(const OpenedSources& sources) {
  std::vector<MappedFile> files;
  for (const OpenedFile& file : sources.files) {
    FF_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Map(file));
    files.push_back(std::move(mapped));
  }
  return files;
}

absl::Status ReadTensor(MappedFile& file, const PlannedTensor& tensor,
                        std::byte* arena, const cuda::Stream* stream) {
  const SourceTensor& source = tensor.source;
  std::byte* const to = arena + tensor.arena_offset;
  if (stream == nullptr) {
    return file.Copy(source.file_offset, absl::MakeSpan(to, source.size_bytes));
  }
  FF_ASSIGN_OR_RETURN(const std::byte* from,
                      file.View(source.file_offset, source.size_bytes));
  FF_RETURN_IF_ERROR(stream->CopyAsync(to, from, source.size_bytes));
  return stream->Synchronize();
}

}  // namespace

absl::StatusOr<BaselineReport> TouchPerTensor(const LoadPlan& plan,
                                              const OpenedSources& sources) {
  BaselineReport report;
  const int64_t start = Now();
  FF_ASSIGN_OR_RETURN(const std::vector<MappedFile> files, MapAll(sources));
  std::vector<std::byte> scratch(kScratchBytes);
  for (const PlannedTensor& tensor : plan.tensors) {
    const SourceTensor& source = tensor.source;
    for (uint64_t at = 0; at < source.size_bytes; at += kScratchBytes) {
      const uint64_t size = std::min(kScratchBytes, source.size_bytes - at);
      FF_RETURN_IF_ERROR(files[source.file].Copy(
          source.file_offset + at, absl::MakeSpan(scratch.data(), size)));
    }
  }
  report.read_ns = Now() - start;
  return report;
}

absl::StatusOr<BaselineReport> LoadPerTensor(const LoadPlan& plan,
                                             const OpenedSources& sources,
                                             std::byte* arena,
                                             const cuda::Stream* stream,
                                             Collective& group,
                                             BaselineBroadcast broadcast) {
  BaselineReport report;
  const bool reads = group.rank() == 0 || broadcast == BaselineBroadcast::kNone;
  const auto run = [&]() -> absl::Status {
    std::vector<MappedFile> files;
    if (reads) {
      const int64_t start = Now();
      FF_ASSIGN_OR_RETURN(files, MapAll(sources));
      report.read_ns += Now() - start;
    }
    for (const PlannedTensor& tensor : plan.tensors) {
      if (tensor.source.size_bytes == 0) continue;
      const int64_t start = Now();
      if (reads) {
        FF_RETURN_IF_ERROR(
            ReadTensor(files[tensor.source.file], tensor, arena, stream));
      }
      const int64_t read = Now();
      report.read_ns += read - start;
      if (broadcast == BaselineBroadcast::kNone) {
        FF_RETURN_IF_ERROR(group.Check());
        continue;
      }
      FF_RETURN_IF_ERROR(group.Broadcast(arena + tensor.arena_offset,
                                         tensor.source.size_bytes, 0));
      if (broadcast == BaselineBroadcast::kSync) {
        FF_RETURN_IF_ERROR(group.Wait());
      }
      report.collective_ns += Now() - read;
    }
    const int64_t start = Now();
    FF_RETURN_IF_ERROR(group.Wait());
    report.collective_ns += Now() - start;
    return absl::OkStatus();
  };
  const absl::Status mine = run();
  if (!mine.ok()) {
    group.Fail(mine);
    return mine;
  }
  FF_RETURN_IF_ERROR(Agree(group, mine));
  return report;
}

}  // namespace firstframe
