// Which peak a utilisation is divided by, and where it is from.

#ifndef LIB_FLOPS_PEAK_CHOICE_H_
#define LIB_FLOPS_PEAK_CHOICE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/flops/device_peaks.h"

namespace firstframe {

struct PeakWish {
  std::string device_name;            // as its driver names it; may be empty
  std::optional<double> flag_tflops;  // --peak_tflops
  // The value of VIDEOX_PERF_PEAK_TFLOPS; empty when unset. The flag wins.
  std::string variable;
};

struct PeakChoice {
  std::optional<DevicePeak> device;  // its entry, also when its rate lost
  std::optional<double> tflops;      // of one device
  std::string reason;                // where it is from, or why there is none
};

// The flag, else the variable, else the table's rate for `math`; 0 counts as
// not given. InvalidArgument for a flag or a variable that is no number a peak
// can be: better than a utilisation by another peak than the one asked for.
absl::StatusOr<PeakChoice> ChoosePeak(const PeakWish& wish, MathType math,
                                      const DevicePeaks& peaks);

}  // namespace firstframe

#endif  // LIB_FLOPS_PEAK_CHOICE_H_
