// What a device really reaches: large matrix products and a copy, measured on
// it. The second denominator beside the datasheet's: boards reach 80 to 90 % of
// theirs, and some pass it.

#ifndef LIB_FLOPS_MEASURED_PEAK_H_
#define LIB_FLOPS_MEASURED_PEAK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/flops/device_peaks.h"

namespace firstframe {

struct MeasureOptions {
  int64_t size = 8192;  // of the square matrices
  int rounds = 7;       // each timed on its own; the best and the median count
  int products = 8;     // a round
};

struct MeasuredRate {
  MathType math = MathType::kBf16;
  std::vector<double> samples_tflops;  // one a round
  double best_tflops = 0;
  double median_tflops = 0;
};

struct MeasuredPeak {
  std::string device_name;
  int64_t size = 0;
  std::vector<MeasuredRate> rates;  // fp32, tf32, bf16, fp16
  double copy_gb_per_s = 0;         // device to device, bytes read and written
  // The same products timed by events and by the host clock around a
  // synchronisation: the check that events see the work.
  double event_s = 0;
  double wall_s = 0;
};

// Multiplies random matrices (uniform in -1 to 1, since constant ones draw less
// power and run faster) on the current device of `runtime` through cuBLAS,
// which is opened at run time. Takes about two seconds and 3 * size^2 * 4
// bytes. Unavailable without a device or cuBLAS, Unimplemented in a build
// without CUDA, ResourceExhausted when memory does not suffice.
absl::StatusOr<MeasuredPeak> MeasurePeak(cuda::Runtime& runtime,
                                         const cuda::LibrarySearch& search,
                                         const MeasureOptions& options = {});

}  // namespace firstframe

#endif  // LIB_FLOPS_MEASURED_PEAK_H_
