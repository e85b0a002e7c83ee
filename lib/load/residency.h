// How much of a file is in the page cache, and how to put it out.
//
// cachestat(2) (Linux 6.5) counts the pages of a range without touching them;
// where it is missing or refused, mincore(2) on a mapping answers instead. For
// a file that the caller neither owns nor may write, mincore says "all
// resident" whatever the truth, so the answer is then "unknown", with the
// reason.

#ifndef LIB_LOAD_RESIDENCY_H_
#define LIB_LOAD_RESIDENCY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/load/data_file.h"

namespace firstframe {

struct Residency {
  uint64_t total_pages = 0;
  std::optional<uint64_t> cached_pages;  // empty: unknown
  // Of the cached pages, those not yet written to the disk, which no eviction
  // can remove; empty where only mincore answered.
  std::optional<uint64_t> dirty_pages;
  std::string method;          // "cachestat", "mincore", or "none"
  std::string unknown_reason;  // set when cached_pages is empty

  // Cached pages over all pages, 0 to 1; 1 for an empty range.
  std::optional<double> fraction() const {
    if (!cached_pages) return std::nullopt;
    if (total_pages == 0) return 1.0;
    return static_cast<double>(*cached_pages) /
           static_cast<double>(total_pages);
  }
};

enum class ResidencyMethod { kAuto, kCachestat, kMincore };

// Counts the cached pages that [offset, offset + size) touches, clipped to the
// file. Reads no file data and changes no cache state. Never fails: what cannot
// be found out is unknown. Takes microseconds per call, plus about 1 us per
// GiB.
Residency ProbeResidency(const DataFile& file, uint64_t offset, uint64_t size,
                         ResidencyMethod method = ResidencyMethod::kAuto);

inline Residency ProbeResidency(const DataFile& file) {
  return ProbeResidency(file, 0, file.size_bytes());
}

// Looks at one page of every 2 MiB of the range instead of counting them all:
// 0.4 us a page, where a count of 4 KiB folios takes 6 us for 2 MiB. Page
// counts are those of the pages looked at, `method` says so. Ranges of at most
// 2 MiB, and those that cachestat(2) does not answer for, are counted.
Residency SampleResidency(const DataFile& file, uint64_t offset, uint64_t size);

// Adds `part` to `*sum`; unknown plus anything is unknown.
void AddResidency(const Residency& part, Residency* sum);

// Writes the file's dirty pages out (fsync) and drops the clean ones
// (posix_fadvise). The kernel may keep pages that are mapped, locked or in use
// by others, and a file system in memory keeps all: probe afterwards before
// calling anything cold. Codes from errno.
absl::Status EvictFromPageCache(const DataFile& file);

// Reads the whole file so that it is in the page cache.
absl::Status FillPageCache(const DataFile& file);

}  // namespace firstframe

#endif  // LIB_LOAD_RESIDENCY_H_
