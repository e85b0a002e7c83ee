#include "lib/cuda/device.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/status_macros.h"

namespace firstframe::cuda {

absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view text) {
  if (text == "auto") return DeviceSpec{DeviceKind::kAuto};
  if (text == "cpu") return DeviceSpec{DeviceKind::kCpu};
  if (text == "cuda") return DeviceSpec{DeviceKind::kCuda};
  absl::string_view number = text;
  int ordinal = 0;
  if (absl::ConsumePrefix(&number, "cuda:") &&
      absl::SimpleAtoi(number, &ordinal) && ordinal >= 0 &&
      number == absl::StrCat(ordinal)) {
    return DeviceSpec{DeviceKind::kCuda, ordinal};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device '", text, "': expected auto, cpu, cuda or cuda:N"));
}

absl::StatusOr<DeviceSpec> ResolveDevice(const DeviceSpec& spec,
                                         Runtime& runtime) {
  if (spec.kind == DeviceKind::kCpu) return spec;
  const absl::StatusOr<int> count = runtime.DeviceCount();
  if (spec.kind == DeviceKind::kAuto) {
    const bool has_gpu = count.ok() && *count > 0;
    return DeviceSpec{has_gpu ? DeviceKind::kCuda : DeviceKind::kCpu};
  }
  if (!count.ok()) return Annotate(count.status(), DeviceSpecToString(spec));
  if (spec.ordinal >= *count) {
    return absl::UnavailableError(
        absl::StrCat(DeviceSpecToString(spec), ": found ", *count,
                     *count == 1 ? " GPU" : " GPUs",
                     "; check nvidia-smi and CUDA_VISIBLE_DEVICES"));
  }
  return spec;
}

std::string DeviceSpecToString(const DeviceSpec& spec) {
  switch (spec.kind) {
    case DeviceKind::kAuto:
      return "auto";
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return absl::StrCat("cuda:", spec.ordinal);
  }
  return "";
}

std::string VersionToString(int version) {
  if (version == 0) return "none";
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace firstframe::cuda
