// One startup of a Wan VAE, phase by phase: libraries, device, process group,
// component, first decode.

#ifndef LIB_STARTUP_VAE_STARTUP_H_
#define LIB_STARTUP_VAE_STARTUP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/activation/activation_tracer.h"
#include "lib/cuda/device.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/dist/launch.h"
#include "lib/metrics/perf_settings.h"
#include "lib/phase/phase_recorder.h"
#include "lib/startup/startup_report.h"
#include "lib/wan_vae/cuda/math_mode.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

struct VideoSize {
  int64_t frames = 9;
  int64_t height = 128;
  int64_t width = 192;
};

struct VaeStartupOptions {
  // A component folder, a pipeline folder, or a .safetensors file
  // (lib/wan_vae/load_weights.h).
  std::string model_path;
  bool is_synthetic = false;
  cuda::DeviceSpec device;
  cuda::MathMode math = cuda::MathMode::kFp32;  // on a GPU
  int threads = 0;           // 0: every CPU this process may use
  bool synchronize = false;  // for the report; the recorder does it
  // On a GPU, read the checkpoint while the driver is opened and the context
  // made. Not done with `synchronize`, which is there to tell phases apart.
  bool overlaps = true;
  Launch launch;
  // Also join the launch's ranks (one alone, too) in an NCCL group, which is
  // what a framework does at this point. Needs a GPU. A group of one is not
  // given up: the end of the process does that in no time.
  bool joins_nccl = false;
  cuda::LibrarySearch library_search;  // for NCCL
  // What is decoded: the file, else the shape, else the video's shape.
  std::string latent_file;
  std::string latent_shape;  // "1x16x3x60x104"
  VideoSize video;
  uint64_t seed = 0;
  int warm_decodes = 0;
  int offload_cycles = 0;  // after them: lib/startup/offload_cycles.h
  std::string requested_cache = "as_is";  // for the report only
  ActivationTracer* tracer = nullptr;     // records every decode's modules
  // VIDEOX_PERF: each decode writes a record, and a line to `perf_log`. Null or
  // not enabled: nothing is recorded.
  const PerfSettings* perf_settings = nullptr;
  std::ostream* perf_log = nullptr;
  // Called with the phase that runs and the share of it that is done.
  std::function<void(absl::string_view phase, double done)> progress;
  std::function<bool()> is_cancelled;
};

// Everything is filled in as far as the run came.
struct VaeStartupResult {
  absl::Status status;
  std::vector<std::string> notes;  // for the user, from the tracer
  StartupContext context;  // of this run; command and machine stay empty
  CheckpointFacts checkpoint;
  StartupSample sample;               // phases, start and usage stay empty
  std::optional<FloatTensor> output;  // the first decode's
};

// Runs the startup on this thread, whose phases go to the collector that the
// caller has opened: library_load, device_setup, process_group_setup,
// checkpoint_residency, component.vae (vae.construct, vae.device_transfer,
// vae.checkpoint_read, vae.weight_assignment, vae.finalize), first_decode,
// inspect_output, warm_decode each time, process_group_teardown, and the phases
// of offload cycles. Where the read overlaps, checkpoint_residency comes first,
// vae.checkpoint_read is on a lane "weights", and component.vae holds
// vae.checkpoint_wait instead.
VaeStartupResult RunVaeStartup(const VaeStartupOptions& options);

}  // namespace firstframe

#endif  // LIB_STARTUP_VAE_STARTUP_H_
