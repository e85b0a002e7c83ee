// The page cache's state of all files of a load, taken at once: in total, and
// by stretches of each file.
//
// The kernel counts cached pages by walking them, 3 ms a GB where they are 4
// KiB folios: several threads do it, and nobody does it twice.

#ifndef LIB_LOAD_RESIDENCY_MAP_H_
#define LIB_LOAD_RESIDENCY_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/load/data_file.h"
#include "lib/load/residency.h"

namespace firstframe {

class ResidencyMap {
 public:
  // kCount counts every page, kSample looks at one in 2 MiB (SampleResidency).
  enum class Detail { kCount, kSample };

  // Probes every file, with up to `threads` threads for large ones.
  ResidencyMap(absl::Span<const DataFile* const> files, int threads,
               Detail detail = Detail::kCount);

  // All files together.
  const Residency& total() const { return total_; }
  const Residency& file(size_t f) const { return files_[f].whole; }

  enum class State { kIn, kOut, kMixed, kUnknown };
  // What the stretches that [begin, end) of file `f` touches are: all in the
  // page cache, all out of it, or neither.
  State StateOf(size_t f, uint64_t begin, uint64_t end) const;

 private:
  struct File {
    Residency whole;
    std::vector<State> stretches;
  };

  std::vector<File> files_;
  Residency total_;
};

}  // namespace firstframe

#endif  // LIB_LOAD_RESIDENCY_MAP_H_
