// Peak rates of devices by the name their driver reports.
//
// The table is device_peaks.textproto, compiled in. A name matches whole, never
// in part: "H20" is not "H200", "L4" not "L40S", "RTX 4090" neither "RTX 4090
// D" nor "RTX 4090 Laptop GPU". A device that is not in the table has no peak,
// and whoever divides by it reports null with the reason.

#ifndef LIB_FLOPS_DEVICE_PEAKS_H_
#define LIB_FLOPS_DEVICE_PEAKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/flops/device_peaks.pb.h"

namespace firstframe {

// Arithmetic that a peak is for. bf16 and fp16 run at one rate.
enum class MathType { kFp32, kTf32, kBf16, kFp16, kFp8 };

// "fp32", "tf32", "bf16", "fp16", "fp8".
absl::string_view MathTypeName(MathType type);

// InvalidArgument with the list for any other word.
absl::StatusOr<MathType> ParseMathType(absl::string_view name);

// Bytes of one element: 4, 4, 2, 2, 1.
double MathTypeBytes(MathType type);

// The compiled-in table. Thread-safe.
const DevicePeaks& BuiltinDevicePeaks();

// Reads a table in protobuf text format. InvalidArgument with line and column
// when it does not parse, or when two entries share a name or one has a rate
// that is not positive.
absl::StatusOr<DevicePeaks> ParseDevicePeaks(const std::string& textproto);

// Finds the entry of the device that its driver calls `device_name`. NotFound
// with the reason ("a MIG slice", "nearest name is ...") when there is none.
absl::StatusOr<DevicePeak> FindDevicePeak(const DevicePeaks& peaks,
                                          absl::string_view device_name);

// The entry's rate for `type` in TFLOPS. NotFound when it is not known.
absl::StatusOr<double> PeakTflops(const DevicePeak& peak, MathType type);

}  // namespace firstframe

#endif  // LIB_FLOPS_DEVICE_PEAKS_H_
