// The parts of CpuForward that change a chunk's size.

#include <algorithm>
#include <utility>

#include "lib/base/status_macros.h"
#include "lib/wan_vae/cpu_forward.h"
#include "lib/wan_vae/cpu_kernels.h"

namespace firstframe {

absl::StatusOr<CpuActivation> CpuForward::Upsample(const ResampleBlock& block,
                                                   CpuActivation x) {
  int64_t fold = 1;
  if (block.has_time_conv) {
    // The first chunk passes as it is and leaves no frames behind: the second
    // starts from zeros.
    Cache& cache = caches_[block.module];
    if (cache.kept++ > 0) {
      FF_ASSIGN_OR_RETURN(x, CausalOn(block.time_conv, x));
      fold = 2;
    }
  }
  const int64_t channels = x.c / fold;
  FF_ASSIGN_OR_RETURN(CpuActivation up,
                      Allocate(x.n, x.t * fold, 2 * x.h, 2 * x.w, channels));
  UpsampleNearest(x.data(), x.n * x.t, x.h, x.w, channels, fold, up.data());
  x = CpuActivation();
  FF_RETURN_IF_ERROR(Observe(block.reshape, up, /*per_frame=*/true));
  FF_ASSIGN_OR_RETURN(CpuActivation y, Pointwise(block.conv, std::move(up)));
  FF_RETURN_IF_ERROR(Observe(block.conv.module, y, /*per_frame=*/true));
  FF_RETURN_IF_ERROR(Observe(block.sequential, y, /*per_frame=*/true));
  FF_RETURN_IF_ERROR(Observe(block.module, y));
  return y;
}

// Keeps one frame, unlike other causal layers: stride 2 takes [last | new] two
// by two.
absl::StatusOr<CpuActivation> CpuForward::TimeDownsample(const ConvLayer& layer,
                                                         CpuActivation x) {
  Cache& cache = caches_[layer.module];
  const int64_t frame = x.frame_size();
  const bool is_first = cache.kept == 0;
  CpuActivation y;
  if (!is_first) {
    FF_ASSIGN_OR_RETURN(const CpuActivation input,
                        Allocate(x.n, x.t + 1, x.h, x.w, x.c));
    const int64_t stride = input.t * frame;
    CopyBlocks(cache.frames.data(), frame, input.data(), stride, x.n, frame);
    CopyBlocks(x.data(), x.t * frame, input.data() + frame, stride, x.n,
               x.t * frame);
    const ConvShape shape = {
        .batch = x.n, .frames = input.t, .height = x.h, .width = x.w};
    const auto out = ConvOutputShape(layer, shape);
    FF_ASSIGN_OR_RETURN(y, Allocate(out[0], out[1], out[2], out[3], out[4]));
    FF_RETURN_IF_ERROR(RunConv(layer, shape, input.data(), y.data()));
    FF_RETURN_IF_ERROR(Observe(layer.module, y));
  } else {
    FF_ASSIGN_OR_RETURN(cache.frames, layers_.pool->Acquire(x.n * frame));
    cache.kept = 1;
  }
  CopyBlocks(x.data() + (x.t - 1) * frame, x.t * frame, cache.frames.data(),
             frame, x.n, frame);
  return is_first ? std::move(x) : std::move(y);
}

absl::StatusOr<CpuActivation> CpuForward::Downsample(const ResampleBlock& block,
                                                     CpuActivation x) {
  if (Wants(block.reshape)) {
    FF_ASSIGN_OR_RETURN(CpuActivation padded,
                        Allocate(x.n, x.t, x.h + 1, x.w + 1, x.c));
    std::fill_n(padded.data(), padded.size(), 0.0f);
    for (int64_t i = 0; i < x.n * x.t; ++i) {
      CopyBlocks(x.data() + i * x.frame_size(), x.w * x.c,
                 padded.data() + i * padded.frame_size(), padded.w * x.c, x.h,
                 x.w * x.c);
    }
    FF_RETURN_IF_ERROR(Observe(block.reshape, padded, /*per_frame=*/true));
  }
  const ConvShape shape = {.batch = x.n,
                           .frames = x.t,
                           .height = x.h,
                           .width = x.w,
                           .zero_after = 1};
  const auto out = ConvOutputShape(block.conv, shape);
  FF_ASSIGN_OR_RETURN(CpuActivation y,
                      Allocate(out[0], out[1], out[2], out[3], out[4]));
  FF_RETURN_IF_ERROR(RunConv(block.conv, shape, x.data(), y.data()));
  FF_RETURN_IF_ERROR(Observe(block.conv.module, y, /*per_frame=*/true));
  FF_RETURN_IF_ERROR(Observe(block.sequential, y, /*per_frame=*/true));
  if (block.has_time_conv) {
    FF_ASSIGN_OR_RETURN(y, TimeDownsample(block.time_conv, std::move(y)));
  }
  FF_RETURN_IF_ERROR(Observe(block.module, y));
  return y;
}

}  // namespace firstframe
