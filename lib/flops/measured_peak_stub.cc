#include "absl/status/status.h"
#include "lib/flops/measured_peak.h"

namespace firstframe {

absl::StatusOr<MeasuredPeak> MeasurePeak(cuda::Runtime&,
                                         const cuda::LibrarySearch&,
                                         const MeasureOptions&) {
  return absl::UnimplementedError(
      "built without CUDA; rebuild where the CUDA toolkit is installed");
}

}  // namespace firstframe
