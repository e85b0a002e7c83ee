// ff_stats_*: lib/stats.

#include <algorithm>

#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/tensor.h"

namespace firstframe::c_api {
namespace {

static_assert(kSketchSize == 64 && kNumExponents == 256 && kNumSamples == 32,
              "ff_stats has fixed sizes");

absl::StatusOr<TensorStats> Compute(const TensorArgument& tensor,
                                    const StatsRequest& request) {
  if (tensor.device == FF_HOST) return HostStats(tensor, request);
  FF_ASSIGN_OR_RETURN(const StatsPoll poll,
                      EnqueueDeviceStats(tensor, request));
  FF_ASSIGN_OR_RETURN(const std::optional<TensorStats> stats, poll(true));
  return *stats;
}

void Fill(const TensorStats& from, ff_stats& to) {
  to.numel = from.numel;
  to.nan = from.nan;
  to.inf_pos = from.inf_pos;
  to.inf_neg = from.inf_neg;
  to.zero = from.zero;
  to.sum = from.sum;
  to.abs_sum = from.abs_sum;
  to.mean = from.mean;
  to.m2 = from.m2;
  to.min = from.min;
  to.max = from.max;
  to.amax = from.amax;
  to.amax_index = from.amax_index;
  to.torch_sum = TorchSum(from);
  to.torch_abs_mean = TorchAbsMean(from);
  to.torch_mean = TorchMean(from);
  to.torch_std = TorchStd(from);
  to.torch_min = TorchMin(from);
  to.torch_max = TorchMax(from);
  to.h_set = from.h_set;
  to.h_pos = from.h_pos;
  std::copy(from.sketch.begin(), from.sketch.end(), to.sketch);
  std::copy(from.exponents.begin(), from.exponents.end(), to.exponents);
  std::copy(from.samples.begin(), from.samples.end(), to.samples);
}

}  // namespace
}  // namespace firstframe::c_api

extern "C" ff_status ff_stats_compute(const ff_tensor* tensor, uint32_t flags,
                                      ff_stats* stats) {
  using namespace firstframe::c_api;  // NOLINT: one function
  return Guard([&]() -> absl::Status {
    FF_ASSIGN_OR_RETURN(const TensorArgument argument, ReadTensor(tensor));
    ff_stats result;
    FF_RETURN_IF_ERROR(ReadStruct(stats, "stats", result));
    const firstframe::StatsRequest request = {
        .hashes = (flags & FF_STATS_HASHES) != 0,
        .sketch = (flags & FF_STATS_SKETCH) != 0,
        .exponents = (flags & FF_STATS_EXPONENTS) != 0,
        .samples = (flags & FF_STATS_SAMPLES) != 0};
    FF_ASSIGN_OR_RETURN(const firstframe::TensorStats values,
                        Compute(argument, request));
    Fill(values, result);
    *stats = result;
    return absl::OkStatus();
  });
}
