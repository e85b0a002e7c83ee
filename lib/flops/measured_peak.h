// What a device really reaches: large matrix products and a copy, measured on
// it. The second denominator beside the datasheet's: boards reach 80 to 90 % of
// theirs, and some pass it.

#ifndef LIB_FLOPS_MEASURED_PEAK_H_
#define LIB_FLOPS_MEASURED_PEAK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/device_state.h"
#include "lib/flops/matrix_product.h"

namespace firstframe {

struct MeasureOptions {
  int64_t size = 8192;  // of the square matrices; a multiple of 16
  int rounds = 7;       // each timed on its own; the best and the median count
  int products = 8;     // a round
  // Then without a pause for so long: where power or heat limit the clock, the
  // rate falls below that of short rounds. 0: not measured.
  double sustained_s = 0.5;
  std::vector<MathType> math = {MathType::kFp32, MathType::kTf32,
                                MathType::kBf16, MathType::kFp16,
                                MathType::kFp8};
};

struct MeasuredRate {
  MathType math = MathType::kBf16;
  // Why the device has no such product; then nothing below is set.
  std::string unavailable_reason;
  std::vector<double> samples_tflops;  // one a round
  double best_tflops = 0;
  double median_tflops = 0;
  std::optional<double> sustained_tflops;
  std::optional<DeviceState> state;  // in the middle of the sustained part
  // Largest difference of checked elements from the same sums on the host in
  // double, as a fraction of the products' standard deviation.
  double largest_error = 0;
};

struct MeasuredPeak {
  std::string device_name;
  int64_t size = 0;
  std::vector<MeasuredRate> rates;
  std::string state_reason;  // why there are no states; empty: there are
  double copy_gb_per_s = 0;  // device to device, bytes read and written
  // The rounds timed by events and by the host clock around a synchronisation:
  // the check that events see the work.
  double event_s = 0;
  double wall_s = 0;
};

// The best rate for `math`. Unavailable with the reason when there is none.
absl::StatusOr<double> BestTflops(const MeasuredPeak& peak, MathType math);

// What a measurement runs on; the tests put fakes here.
struct MeasureDevice {
  cuda::Runtime& runtime;
  // As CreateMatrixProduct. Unavailable: the rate has that reason.
  std::function<absl::StatusOr<std::unique_ptr<MatrixProduct>>(
      MathType, int64_t size, const cuda::Stream&)>
      create_product;
  // Null: without states.
  std::function<DeviceState()> read_state;
};

// Multiplies random matrices (uniform in -1 to 1, since constant ones draw less
// power and run faster) on the current device. Takes about five seconds and
// 3 * size^2 * 4 bytes there, size^2 * 8 on the host. InvalidArgument for
// options out of range, DataLoss when a product is wrong, ResourceExhausted
// when memory does not suffice, and the runtime's errors.
absl::StatusOr<MeasuredPeak> MeasurePeak(const MeasureDevice& device,
                                         const MeasureOptions& options = {});

// The same with cuBLAS, cuBLASLt and NVML, which are opened at run time.
// Unavailable without a device or cuBLAS, Unimplemented in a build without
// CUDA.
absl::StatusOr<MeasuredPeak> MeasurePeak(cuda::Runtime& runtime,
                                         const cuda::LibrarySearch& search,
                                         const MeasureOptions& options = {});

}  // namespace firstframe

#endif  // LIB_FLOPS_MEASURED_PEAK_H_
