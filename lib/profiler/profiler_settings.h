// What FastVideo's profiling variables ask for.

#ifndef LIB_PROFILER_PROFILER_SETTINGS_H_
#define LIB_PROFILER_PROFILER_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace firstframe {

struct ProfilerSettings {
  // FASTVIDEO_TORCH_PROFILER_DIR, "~" expanded; empty: profiling is off.
  std::string dir = {};
  // FASTVIDEO_TORCH_PROFILE_REGIONS as it stands
  // (lib/regions/region_selection).
  std::string regions = {};
  bool has_regions = false;    // the variable is set, maybe to nothing
  bool record_shapes = false;  // FASTVIDEO_TORCH_PROFILER_RECORD_SHAPES
  bool with_memory = false;    // ..._WITH_PROFILE_MEMORY
  bool with_stack = false;     // ..._WITH_STACK
  bool with_flops = false;     // ..._WITH_FLOPS
  // RANK, else OMPI_COMM_WORLD_RANK, else SLURM_PROCID; 0 when none is a
  // number.
  int rank = 0;
  int world_size = 1;
  // One sentence for each thing that is not as it was probably meant.
  std::vector<std::string> warnings = {};
};

// Reads the settings through `getenv` (null: not set), once. "0", "false",
// "no", "off" and the empty word turn a knob off, "1", "true", "yes", "on" turn
// it on, in any case; any other word turns it on, as FastVideo does, with a
// warning.
ProfilerSettings ReadProfilerSettings(
    absl::FunctionRef<const char*(const char*)> getenv);

// Returns warnings about the folder that traces go to: relative (FastVideo
// requires an absolute one), missing and not creatable, or not writable. Looks
// at the file system; creates nothing.
std::vector<std::string> CheckTraceDir(const std::string& dir);

}  // namespace firstframe

#endif  // LIB_PROFILER_PROFILER_SETTINGS_H_
