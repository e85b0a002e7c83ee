#include "lib/load/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Same number on every architecture; older kernel headers do not name it.
constexpr long kCachestatSyscall = 451;

struct CachestatRange {
  uint64_t offset;
  uint64_t length;  // 0 means to the end of the file
};

struct CachestatResult {
  uint64_t cached;
  uint64_t dirty;
  uint64_t writeback;
  uint64_t evicted;
  uint64_t recently_evicted;
};

constexpr uint64_t kSampleStep = 2 << 20;

uint64_t PageSize() {
  static const uint64_t size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Returns errno, or 0 with `*out` filled.
int Cachestat(int fd, uint64_t offset, uint64_t size, Residency* out) {
  CachestatRange range = {.offset = offset, .length = size};
  CachestatResult result = {};
  if (::syscall(kCachestatSyscall, fd, &range, &result, 0u) != 0) return errno;
  out->cached_pages = std::min(result.cached, out->total_pages);
  out->dirty_pages =
      std::min(result.dirty + result.writeback, *out->cached_pages);
  out->method = "cachestat";
  return 0;
}

// mincore's answer is the truth only for those who could change the file.
bool MayTrustMincore(const DataFile& file) {
  struct stat info;
  if (::fstat(file.fd(), &info) != 0) return false;
  if (::geteuid() == 0 || info.st_uid == ::geteuid()) return true;
  return ::access(file.path().c_str(), W_OK) == 0;
}

// Returns why the answer is unknown, or an empty string with `*out` filled.
std::string Mincore(const DataFile& file, uint64_t offset, uint64_t size,
                    Residency* out) {
  if (!MayTrustMincore(file)) {
    return "mincore answers only a file's owner or writer";
  }
  const uint64_t page = PageSize();
  const uint64_t first = offset / page * page;
  // A window at a time, so that a large file needs no large mapping.
  constexpr uint64_t kWindowPages = 1 << 16;
  std::vector<unsigned char> states;
  uint64_t cached = 0;
  for (uint64_t at = first; at < offset + size; at += kWindowPages * page) {
    const uint64_t bytes = std::min(kWindowPages * page, offset + size - at);
    void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd(),
                       static_cast<off_t>(at));
    if (map == MAP_FAILED) {
      return absl::StrCat("the file cannot be mapped: ", ::strerror(errno));
    }
    states.resize((bytes + page - 1) / page);
    const int rc = ::mincore(map, bytes, states.data());
    const int error = errno;
    ::munmap(map, bytes);
    if (rc != 0) return absl::StrCat("mincore failed: ", ::strerror(error));
    for (const unsigned char state : states) cached += state & 1;
  }
  out->cached_pages = cached;
  out->method = "mincore";
  return "";
}

}  // namespace

Residency ProbeResidency(const DataFile& file, uint64_t offset, uint64_t size,
                         ResidencyMethod method) {
  Residency result;
  result.method = "none";
  offset = std::min(offset, file.size_bytes());
  size = std::min(size, file.size_bytes() - offset);
  if (size == 0) {
    result.cached_pages = 0;
    return result;
  }
  const uint64_t page = PageSize();
  result.total_pages = (offset + size + page - 1) / page - offset / page;
  int error = ENOSYS;
  if (method != ResidencyMethod::kMincore) {
    error = Cachestat(file.fd(), offset, size, &result);
    if (error == 0) return result;
  }
  if (method != ResidencyMethod::kCachestat) {
    result.unknown_reason = Mincore(file, offset, size, &result);
    if (result.unknown_reason.empty()) return result;
  }
  if (method != ResidencyMethod::kMincore) {
    result.unknown_reason = absl::StrCat(
        "cachestat: ", ::strerror(error),
        result.unknown_reason.empty() ? "" : "; ", result.unknown_reason);
  }
  return result;
}

Residency SampleResidency(const DataFile& file, uint64_t offset,
                          uint64_t size) {
  offset = std::min(offset, file.size_bytes());
  size = std::min(size, file.size_bytes() - offset);
  if (size <= kSampleStep) return ProbeResidency(file, offset, size);
  Residency sampled;
  sampled.method = "cachestat of 1 page in 2 MiB";
  sampled.cached_pages = 0;
  sampled.dirty_pages = 0;
  for (uint64_t at = offset; at < offset + size; at += kSampleStep) {
    Residency page = {.total_pages = 1};
    if (Cachestat(file.fd(), at, 1, &page) != 0) {
      return ProbeResidency(file, offset, size);
    }
    ++sampled.total_pages;
    *sampled.cached_pages += *page.cached_pages;
    *sampled.dirty_pages += *page.dirty_pages;
  }
  return sampled;
}

void AddResidency(const Residency& part, Residency* sum) {
  const bool is_first = sum->method.empty();
  sum->total_pages += part.total_pages;
  if (is_first) {
    sum->cached_pages = part.cached_pages;
    sum->dirty_pages = part.dirty_pages;
    sum->method = part.method;
    sum->unknown_reason = part.unknown_reason;
    return;
  }
  if (part.total_pages == 0) return;
  const auto add = [](const std::optional<uint64_t>& a,
                      std::optional<uint64_t>* b) {
    if (a && *b) {
      **b += *a;
    } else {
      b->reset();
    }
  };
  add(part.cached_pages, &sum->cached_pages);
  add(part.dirty_pages, &sum->dirty_pages);
  if (sum->unknown_reason.empty()) sum->unknown_reason = part.unknown_reason;
  if (sum->method == "none") sum->method = part.method;
}

absl::Status EvictFromPageCache(const DataFile& file) {
  // fsync needs no write access; without it dirty pages would stay.
  if (::fsync(file.fd()) != 0 && errno != EINVAL && errno != EROFS) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot flush ", file.path()));
  }
  if (const int error = ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED)) {
    return absl::ErrnoToStatus(
        error, absl::StrCat("cannot drop cached pages of ", file.path()));
  }
  return absl::OkStatus();
}

absl::Status FillPageCache(const DataFile& file) {
  constexpr uint64_t kChunkBytes = 1 << 20;
  std::vector<std::byte> buffer(kChunkBytes);
  for (uint64_t at = 0; at < file.size_bytes(); at += kChunkBytes) {
    const uint64_t size = std::min(kChunkBytes, file.size_bytes() - at);
    FF_RETURN_IF_ERROR(file.Read(at, absl::MakeSpan(buffer.data(), size)));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
