// What the machine can do at best, measured in the same run as the loads: the
// limits that their figures are held against.

#ifndef LIB_LOAD_ROOFLINE_H_
#define LIB_LOAD_ROOFLINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/dist/collective.h"
#include "lib/load/load_mode.h"
#include "lib/load/loader.h"

namespace firstframe {

// In decimal gigabytes a second; empty with a reason where it could not be
// measured. With several ranks each is measured on all at once, and holds this
// rank's figure: what N ranks get together is the sum.
struct Limit {
  std::optional<double> gb_per_s;
  std::string reason;
};

struct Roofline {
  Limit pinned_h2d;   // one pinned block to the device, over and over
  Limit cached_read;  // threads read the files from the page cache into slots
  Limit host_copy;    // threads copy the files' mapping into the arena
  Limit direct_read;  // O_DIRECT reads of the files, kept nowhere
  Limit broadcast;    // bytes of one buffer over the time, 256 MiB
  Limit all_gather;   // bytes of the gathered buffer over the time, 256 MiB

  // Of all ranks together, as sums; equal to the above for one rank.
  double total_pinned_h2d = 0;
  double total_cached_read = 0;
  double total_direct_read = 0;
};

struct RooflineOptions {
  // A host arena to copy into for host_copy; null: not measured.
  std::byte* host_arena = nullptr;
  // A device arena (plan().arena_bytes); null: no device limits.
  std::byte* device_arena = nullptr;
  const cuda::Stream* stream = nullptr;  // the group's, on the device
  bool measure_direct = true;
  // A fifth of a second instead of one: parts of the files, fewer repeats, and
  // direct reads only of files that are not in the page cache.
  bool is_quick = false;
};

// Takes about a second unless `is_quick`. All ranks must call it together. The
// cache state of the files is as it was, but for reads of resident pages.
absl::StatusOr<Roofline> MeasureRoofline(CheckpointLoader& loader,
                                         Collective& group,
                                         const RooflineOptions& options);

// The limit that binds a mode, and its name.
struct BindingLimit {
  std::optional<double> gb_per_s;
  std::string name;  // "pinned_h2d", "cached_read x 2 ranks", ...
};

// `cached_fraction` is the part of the files in the page cache before the load.
BindingLimit LimitFor(LoadMode mode, const Roofline& roofline, int ranks,
                      bool to_device, double cached_fraction);

}  // namespace firstframe

#endif  // LIB_LOAD_ROOFLINE_H_
