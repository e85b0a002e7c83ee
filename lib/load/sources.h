// The files of a load, opened, and the choice of how each part of them is read.

#ifndef LIB_LOAD_SOURCES_H_
#define LIB_LOAD_SOURCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/load/data_file.h"
#include "lib/load/direct_io.h"
#include "lib/load/file_system.h"
#include "lib/load/plan.h"
#include "lib/load/residency.h"
#include "lib/load/residency_map.h"

namespace firstframe {

enum class PathPolicy {
  kAuto,    // by what is in the page cache and what the files lie on
  kCached,  // buffered reads throughout
  kDirect,  // O_DIRECT wherever it works, even for cached bytes
};

struct OpenedFile {
  DataFile buffered;
  FileSystem file_system;
  std::optional<DirectFile> direct;  // empty: see `no_direct_reason`
  std::string no_direct_reason;
};

// Enough to count the pages of a 4 KiB-folio cache at 2 GB a millisecond.
inline constexpr int kProbeThreads = 8;

struct OpenedSources {
  std::vector<OpenedFile> files;  // as LoadPlan::paths

  // What the page cache holds of the files now.
  ResidencyMap Probe(int threads, ResidencyMap::Detail detail =
                                      ResidencyMap::Detail::kCount) const;
  Residency ProbeAll() const { return Probe(kProbeThreads).total(); }
  // OK when no file changed since it was opened.
  absl::Status CheckUnchanged() const;
};

// Opens every file of `plan` and tries a direct read of it, unless `policy` is
// kCached. Codes from errno; DataLoss when a file is shorter than the plan
// needs.
absl::StatusOr<OpenedSources> OpenSources(const LoadPlan& plan,
                                          PathPolicy policy);

struct PieceOptions {
  PathPolicy policy = PathPolicy::kAuto;
  uint64_t cached_window_bytes = 1 << 20;
  uint64_t network_window_bytes = 4 << 20;
  // Direct reads also cover whole blocks around the window: their slots are
  // kDirectSlackBytes longer.
  uint64_t direct_window_bytes = (4 << 20) - (8 << 10);
};

inline constexpr uint64_t kDirectSlackBytes = 8 << 10;

struct ChosenPieces {
  PieceList list;
  // Every way in which this is not the fast path that was meant, once each:
  // "direct reads: overlay refuses O_DIRECT".
  std::vector<std::string> degraded;
};

// Cuts `ranges` (each becomes the group of its index) into pieces and chooses a
// path for each by the page cache's present state: cached where at least 95 %
// of a window's pages are there or nothing is known, else direct on local file
// systems that can, network on servers, and cached for the rest. Probes windows
// only of files that are neither wholly in nor wholly out.
ChosenPieces ChoosePieces(const LoadPlan& plan, const OpenedSources& sources,
                          const ResidencyMap& residency,
                          absl::Span<const ArenaRange> ranges,
                          const PieceOptions& options);

}  // namespace firstframe

#endif  // LIB_LOAD_SOURCES_H_
