#include "lib/cuda/cuda_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace firstframe::cuda {
namespace {

// Numbers of cudaError_t, driver_types.h, CUDA 13.0. Stable by NVIDIA's word.
constexpr int kInvalidValue = 1;
constexpr int kMemoryAllocation = 2;
constexpr int kInitializationError = 3;
constexpr int kStubLibrary = 34;
constexpr int kInsufficientDriver = 35;
constexpr int kDevicesUnavailable = 46;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kNoKernelImageForDevice = 209;
constexpr int kUnsupportedPtxVersion = 222;
constexpr int kNotSupported = 801;
constexpr int kCompatNotSupportedOnDevice = 804;

// The code and what a user can do about it; the remedy may be empty.
struct Meaning {
  absl::StatusCode code;
  absl::string_view remedy;
};

Meaning MeaningOf(int code) {
  using absl::StatusCode;
  switch (code) {
    case kInvalidValue:
    case kInvalidDevice:
      return {StatusCode::kInvalidArgument, ""};
    case kMemoryAllocation:
      return {StatusCode::kResourceExhausted, ""};
    case kStubLibrary:
    case kInsufficientDriver:
    case kCompatNotSupportedOnDevice:
      return {StatusCode::kUnavailable,
              "no NVIDIA driver, or one too old for this build: install the "
              "driver (Debian: apt-get install nvidia-driver; Ubuntu: "
              "nvidia-driver-580), version 580 or newer for CUDA 13"};
    case kNoDevice:
      return {StatusCode::kUnavailable,
              "no NVIDIA GPU is visible: check nvidia-smi and "
              "CUDA_VISIBLE_DEVICES"};
    case kInitializationError:
      return {StatusCode::kUnavailable,
              "the driver did not start: check nvidia-smi"};
    case kDevicesUnavailable:
      return {StatusCode::kUnavailable,
              "the GPU is held by another process (exclusive compute mode)"};
    case kNoKernelImageForDevice:
    case kUnsupportedPtxVersion:
      return {StatusCode::kUnavailable,
              "this build has no code for the GPU; its kernels need compute "
              "capability 8.0 or newer"};
    case kNotSupported:
      return {StatusCode::kUnimplemented, ""};
    default:
      return {StatusCode::kInternal, ""};
  }
}

}  // namespace

absl::Status StatusFromError(int code, absl::string_view name,
                             absl::string_view description,
                             absl::string_view call) {
  if (code == 0) return absl::OkStatus();
  const Meaning meaning = MeaningOf(code);
  // The arguments add nothing that a reader of the message can use.
  const absl::string_view function = call.substr(0, call.find('('));
  std::string message =
      absl::StrCat(function, ": ", name, " (", code, "): ", description);
  if (!meaning.remedy.empty()) absl::StrAppend(&message, "; ", meaning.remedy);
  return absl::Status(meaning.code, message);
}

}  // namespace firstframe::cuda
