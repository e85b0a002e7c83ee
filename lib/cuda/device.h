// Which device a tool works on: the --device flag and what it comes to on this
// machine.

#ifndef LIB_CUDA_DEVICE_H_
#define LIB_CUDA_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/cuda/runtime.h"

namespace firstframe::cuda {

enum class DeviceKind { kAuto, kCpu, kCuda };

struct DeviceSpec {
  DeviceKind kind = DeviceKind::kAuto;
  int ordinal = 0;  // kCuda only
};

// Parses "auto", "cpu", "cuda" or "cuda:N". InvalidArgument otherwise.
absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view text);

// Returns `spec` as kCpu or as kCuda with an ordinal that exists. kAuto is the
// first GPU, or the CPU when there is none or CUDA is not built in. kCuda
// without a GPU is Unavailable or Unimplemented, and the message says what is
// missing; an ordinal past the last is Unavailable with the count. Opens the
// driver but creates no context.
absl::StatusOr<DeviceSpec> ResolveDevice(const DeviceSpec& spec,
                                         Runtime& runtime = GetRuntime());

// Returns "cpu", "cuda:1" or "auto".
std::string DeviceSpecToString(const DeviceSpec& spec);

// Returns "13.0" for 13000 and "none" for 0.
std::string VersionToString(int version);

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_DEVICE_H_
