// A VAE that goes to the host between decodes and comes back: what that costs,
// and that it changes nothing.

#ifndef LIB_STARTUP_OFFLOAD_CYCLES_H_
#define LIB_STARTUP_OFFLOAD_CYCLES_H_

#include <functional>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/module.h"
#include "lib/startup/startup_report.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// What is moved. Null where the VAE runs on the CPU: then nothing moves.
struct OffloadTarget {
  OffloadModule* module = nullptr;
  cuda::Runtime* runtime = nullptr;
  int device = 0;
  cuda::StreamHandle stream = nullptr;  // that decodes run on
};

// Runs `cycles` times: unload, load, decode, as phases offload.unload,
// offload.load (until it is there) and offload.decode. Compares each decode
// with `expected`, bit for bit. The parameters are on the device afterwards.
absl::StatusOr<OffloadFacts> RunOffloadCycles(
    const OffloadTarget& target, int cycles,
    const std::function<absl::StatusOr<FloatTensor>()>& decode,
    const FloatTensor& expected);

}  // namespace firstframe

#endif  // LIB_STARTUP_OFFLOAD_CYCLES_H_
