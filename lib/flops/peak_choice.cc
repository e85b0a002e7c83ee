#include "lib/flops/peak_choice.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace firstframe {

absl::StatusOr<PeakChoice> ChoosePeak(const PeakWish& wish, MathType math,
                                      const DevicePeaks& peaks) {
  PeakChoice choice;
  choice.reason = "no --device_name and no --peak_tflops";
  if (!wish.device_name.empty()) {
    const auto device = FindDevicePeak(peaks, wish.device_name);
    choice.reason = std::string(device.status().message());
    if (device.ok()) {
      choice.device = *device;
      const auto rate = PeakTflops(*device, math);
      choice.reason = std::string(rate.status().message());
      if (rate.ok()) {
        choice.tflops = *rate;
        choice.reason = absl::StrCat(device->board(), ", ", MathTypeName(math),
                                     " dense, ", device->source());
      }
    }
  }
  double tflops = wish.flag_tflops.value_or(0);
  const char* from = "--peak_tflops";
  if (!(tflops >= 0 && std::isfinite(tflops))) {
    return absl::InvalidArgumentError(
        absl::StrCat(from, " is ", tflops, ", expected a positive number"));
  }
  if (!wish.flag_tflops && !wish.variable.empty()) {
    from = "VIDEOX_PERF_PEAK_TFLOPS";
    if (!absl::SimpleAtod(wish.variable, &tflops) || !std::isfinite(tflops) ||
        tflops < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(from, " is '", wish.variable, "', expected a number"));
    }
  }
  if (tflops > 0) {
    choice.tflops = tflops;
    choice.reason = from;
  }
  return choice;
}

}  // namespace firstframe
