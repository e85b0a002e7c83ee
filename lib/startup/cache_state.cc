#include "lib/startup/cache_state.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/status_macros.h"
#include "lib/load/data_file.h"
#include "lib/load/file_system.h"

namespace firstframe {
namespace {

constexpr size_t kReadBytes = 4 << 20;

absl::Status ReadWhole(const DataFile& file, std::vector<std::byte>& buffer) {
  for (uint64_t offset = 0; offset < file.size_bytes();) {
    const size_t size =
        std::min<uint64_t>(buffer.size(), file.size_bytes() - offset);
    FF_RETURN_IF_ERROR(
        file.Read(offset, absl::MakeSpan(buffer).subspan(0, size)));
    offset += size;
  }
  return absl::OkStatus();
}

absl::Status NotCold(const std::string& file, const Residency& residency) {
  std::string reason;
  if (const auto system = DescribeFileSystem(file);
      system.ok() && system->kind == FileSystemKind::kMemory) {
    reason = absl::StrCat("; it lies on ", system->type,
                          ", which has no storage below the cache");
  }
  if (!residency.fraction()) {
    return absl::FailedPreconditionError(absl::StrCat(
        file, ": evicted, but its residency is unknown (",
        residency.unknown_reason, "): the run would not be known to be cold"));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: evicted, but %.1f %% is still in the page cache (by %s)%s: the run "
      "would not be cold",
      file, 100 * *residency.fraction(), residency.method, reason));
}

}  // namespace

absl::Status PrepareCache(absl::string_view state,
                          absl::Span<const std::string> files) {
  if (state == "as_is") return absl::OkStatus();
  std::vector<std::byte> buffer(state == "warm" ? kReadBytes : 0);
  for (const std::string& path : files) {
    FF_ASSIGN_OR_RETURN(const DataFile file, DataFile::Open(path));
    if (state == "warm") {
      FF_RETURN_IF_ERROR(ReadWhole(file, buffer));
      continue;
    }
    FF_RETURN_IF_ERROR(EvictFromPageCache(file));
    const Residency residency = ProbeResidency(file);
    if (!residency.fraction() || *residency.fraction() > kColdShare) {
      return NotCold(path, residency);
    }
  }
  return absl::OkStatus();
}

Residency ProbeFiles(absl::Span<const std::string> files) {
  Residency sum = {.total_pages = 0, .cached_pages = 0, .dirty_pages = 0};
  for (const std::string& path : files) {
    const absl::StatusOr<DataFile> file = DataFile::Open(path);
    if (!file.ok()) {
      sum.cached_pages.reset();
      sum.unknown_reason = std::string(file.status().message());
      continue;
    }
    AddResidency(ProbeResidency(*file), &sum);
  }
  return sum;
}

}  // namespace firstframe
