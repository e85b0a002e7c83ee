#include "lib/wan_vae/cpu_forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/status_macros.h"
#include "lib/wan_vae/cpu_kernels.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// Query rows of attention scores held at a time: 256 x 6,240 positions is 6 MB.
constexpr int64_t kQueryBlock = 256;

// Multiplications for which another thread pays.
constexpr int64_t kProductsPerThread = 1'000'000;

}  // namespace

absl::StatusOr<CpuActivation> CpuForward::Allocate(int64_t n, int64_t t,
                                                   int64_t h, int64_t w,
                                                   int64_t c) {
  CpuActivation x = {.n = n, .t = t, .h = h, .w = w, .c = c};
  FF_ASSIGN_OR_RETURN(x.buffer, layers_.pool->Acquire(x.size()));
  return x;
}

bool CpuForward::Wants(int module) const {
  return observer_ != nullptr &&
         observer_->Wants(layers_.tree->modules[module]);
}

absl::Status CpuForward::Observe(int module, const CpuActivation& x,
                                 bool per_frame) {
  if (!Wants(module)) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const CpuBuffer plain, layers_.pool->Acquire(x.size()));
  const int64_t plane = x.h * x.w;
  ObservedTensor output = {.data = plain.data()};
  if (per_frame) {
    output.shape = {x.n * x.t, x.c, x.h, x.w};
    ToChannelsFirst(x.data(), x.n * x.t, plane, x.c, x.c * plane, plane,
                    plain.data());
  } else {
    output.shape = {x.n, x.c, x.t, x.h, x.w};
    ToChannelsFirst(x.data(), x.n, x.t * plane, x.c, x.c * x.t * plane,
                    x.t * plane, plain.data());
  }
  return observer_->OnOutput(layers_.tree->modules[module], output);
}

absl::Status CpuForward::RunConv(const ConvLayer& layer, const ConvShape& shape,
                                 const float* input, float* output) {
  FF_RETURN_IF_ERROR(
      Annotate(layers_.convs[layer.module]->Run(shape, input, output),
               layers_.tree->modules[layer.module].name));
  flops_ += ConvFlops(layer, shape);
  return after_layer_();
}

// A causal layer sees kernel[0] - 1 earlier frames: those of the chunk before,
// or, in its first chunk, zeros. Its input is laid out as [earlier | new]
// frames, whose last ones are what the next chunk needs; an item is that of one
// batch entry in one group of channels.
absl::StatusOr<CpuActivation> CpuForward::Causal(const ConvLayer& layer,
                                                 int64_t n, int64_t t,
                                                 int64_t h, int64_t w,
                                                 FillFrames fill,
                                                 CpuActivation* sum) {
  const int64_t groups = layers_.convs[layer.module]->num_groups();
  const int64_t items = groups * n;
  const int64_t frame = h * w * layer.in_channels / groups;
  const int64_t earlier = layer.kernel[0] - 1, kept = earlier * frame;
  Cache& cache = caches_[layer.module];
  const bool is_first = cache.kept == 0;
  const int64_t lead = is_first ? 0 : earlier, stride = (lead + t) * frame;
  FF_ASSIGN_OR_RETURN(const CpuBuffer input,
                      layers_.pool->Acquire(items * stride));
  if (lead > 0) {
    CopyBlocks(cache.frames.data(), kept, input.data(), stride, items, kept);
  }
  FF_RETURN_IF_ERROR(fill(input.data() + lead * frame, stride));
  if (earlier > 0) {
    if (is_first) {
      FF_ASSIGN_OR_RETURN(cache.frames, layers_.pool->Acquire(items * kept));
      cache.kept = earlier;
    }
    // Fewer frames than a cache holds: zeros stand for those before them.
    const int64_t zeros = std::max<int64_t>(0, earlier - lead - t) * frame;
    for (int64_t i = 0; zeros > 0 && i < items; ++i) {
      std::fill_n(cache.frames.data() + i * kept, zeros, 0.0f);
    }
    CopyBlocks(input.data() + stride - (kept - zeros), stride,
               cache.frames.data() + zeros, kept, items, kept - zeros);
  }
  const ConvShape shape = {.batch = n,
                           .frames = lead + t,
                           .height = h,
                           .width = w,
                           .zero_frames = earlier - lead,
                           .accumulate = sum != nullptr};
  const auto out = ConvOutputShape(layer, shape);
  CpuActivation output;
  if (sum != nullptr) {
    output = std::move(*sum);
  } else {
    FF_ASSIGN_OR_RETURN(output,
                        Allocate(out[0], out[1], out[2], out[3], out[4]));
  }
  FF_RETURN_IF_ERROR(RunConv(layer, shape, input.data(), output.data()));
  return output;
}

// Writes `x` as the new frames of the input of `layer`.
void CpuForward::FillFrom(const ConvLayer& layer, const CpuActivation& x,
                          float* to, int64_t stride) const {
  const int64_t groups = layers_.convs[layer.module]->num_groups();
  const int64_t rows = x.t * x.h * x.w;
  for (int64_t i = 0; i < x.n; ++i) {
    SplitRows(x.data() + i * rows * x.c, rows, x.c, to + i * stride, groups,
              x.n * stride);
  }
}

absl::StatusOr<CpuActivation> CpuForward::CausalOn(const ConvLayer& layer,
                                                   const CpuActivation& x) {
  const auto fill = [&](float* to, int64_t stride) {
    FillFrom(layer, x, to, stride);
    return absl::OkStatus();
  };
  FF_ASSIGN_OR_RETURN(CpuActivation y,
                      Causal(layer, x.n, x.t, x.h, x.w, fill, nullptr));
  FF_RETURN_IF_ERROR(Observe(layer.module, y));
  return y;
}

absl::StatusOr<CpuActivation> CpuForward::Pointwise(const ConvLayer& layer,
                                                    CpuActivation x) {
  const ConvShape shape = {
      .batch = x.n, .frames = x.t, .height = x.h, .width = x.w};
  FF_ASSIGN_OR_RETURN(CpuActivation y,
                      Allocate(x.n, x.t, x.h, x.w, layer.out_channels));
  FF_RETURN_IF_ERROR(RunConv(layer, shape, x.data(), y.data()));
  return y;
}

// conv(silu(norm(x))), the first two written straight into conv's input. Adds
// to `sum`, which is used up, when given. When an observer looks, each step
// stands alone.
absl::StatusOr<CpuActivation> CpuForward::NormSiluConv(
    const NormLayer& norm, int nonlinearity, int dropout, const ConvLayer& conv,
    const CpuActivation& x, CpuActivation* sum) {
  const float* gamma = layers_.gammas[norm.gamma].data();
  const int64_t rows = x.t * x.h * x.w;
  const auto fill = [&](float* to, int64_t stride) -> absl::Status {
    if (observer_ == nullptr) {
      const int64_t groups = layers_.convs[conv.module]->num_groups();
      for (int64_t i = 0; i < x.n; ++i) {
        NormalizeRows(x.data() + i * rows * x.c, rows, x.c, gamma,
                      /*silu=*/true, to + i * stride, groups, x.n * stride);
      }
      return absl::OkStatus();
    }
    FF_ASSIGN_OR_RETURN(CpuActivation y, Allocate(x.n, x.t, x.h, x.w, x.c));
    NormalizeRows(x.data(), x.n * rows, x.c, gamma, /*silu=*/false, y.data());
    FF_RETURN_IF_ERROR(Observe(norm.module, y));
    Silu(y.data(), y.size());
    FF_RETURN_IF_ERROR(Observe(nonlinearity, y));
    if (dropout >= 0) FF_RETURN_IF_ERROR(Observe(dropout, y));
    FillFrom(conv, y, to, stride);
    return absl::OkStatus();
  };
  CpuActivation* const fused_sum = observer_ == nullptr ? sum : nullptr;
  FF_ASSIGN_OR_RETURN(CpuActivation y,
                      Causal(conv, x.n, x.t, x.h, x.w, fill, fused_sum));
  if (observer_ == nullptr) return y;
  FF_RETURN_IF_ERROR(Observe(conv.module, y));
  if (sum != nullptr) AddTo(y.data(), sum->data(), y.size());
  return y;
}

absl::StatusOr<CpuActivation> CpuForward::Resnet(const ResnetBlock& block,
                                                 CpuActivation x) {
  CpuActivation shortcut;
  if (block.has_shortcut) {
    const ConvShape shape = {
        .batch = x.n, .frames = x.t, .height = x.h, .width = x.w};
    FF_ASSIGN_OR_RETURN(shortcut, Allocate(x.n, x.t, x.h, x.w,
                                           block.conv_shortcut.out_channels));
    FF_RETURN_IF_ERROR(
        RunConv(block.conv_shortcut, shape, x.data(), shortcut.data()));
    FF_RETURN_IF_ERROR(Observe(block.conv_shortcut.module, shortcut));
  } else {
    FF_RETURN_IF_ERROR(Observe(block.conv_shortcut.module, x));
  }
  FF_ASSIGN_OR_RETURN(CpuActivation y,
                      NormSiluConv(block.norm1, block.nonlinearity,
                                   /*dropout=*/-1, block.conv1, x, nullptr));
  if (!block.has_shortcut) {
    shortcut = std::move(x);
  } else {
    x = CpuActivation();  // its memory serves the next layer
  }
  FF_ASSIGN_OR_RETURN(
      y, NormSiluConv(block.norm2, block.nonlinearity, block.dropout,
                      block.conv2, y, &shortcut));
  FF_RETURN_IF_ERROR(Observe(block.module, y));
  return y;
}

// softmax(q k^T / sqrt(c)) v within each frame.
absl::Status CpuForward::Attend(const CpuActivation& qkv, CpuActivation& out) {
  const int64_t positions = qkv.h * qkv.w, c = out.c;
  const int64_t block = std::min(kQueryBlock, positions);
  FF_ASSIGN_OR_RETURN(CpuBuffer scores,
                      layers_.pool->Acquire(block * positions));
  const float scale = 1.0f / std::sqrt(static_cast<float>(c));
  const ThreadLimit limit(block * positions * c / kProductsPerThread + 1);
  for (int64_t image = 0; image < qkv.n * qkv.t; ++image) {
    const float* const q = qkv.data() + image * positions * 3 * c;
    for (int64_t first = 0; first < positions; first += block) {
      const int64_t rows = std::min(block, positions - first);
      FF_RETURN_IF_ERROR(CatchDnnl("attention", [&] {
        dnnl::status status = static_cast<dnnl::status>(
            dnnl_sgemm('N', 'T', rows, positions, c, 1.0f, q + first * 3 * c,
                       3 * c, q + c, 3 * c, 0.0f, scores.data(), positions));
        SoftmaxRows(scores.data(), rows, positions, scale);
        if (status == dnnl::status::success) {
          status = static_cast<dnnl::status>(
              dnnl_sgemm('N', 'N', rows, c, positions, 1.0f, scores.data(),
                         positions, q + 2 * c, 3 * c, 0.0f,
                         out.data() + (image * positions + first) * c, c));
        }
        if (status != dnnl::status::success) {
          throw dnnl::error(static_cast<dnnl_status_t>(status), "sgemm");
        }
      }));
    }
  }
  flops_ += 4 * qkv.n * qkv.t * positions * positions * c;
  return absl::OkStatus();
}

absl::StatusOr<CpuActivation> CpuForward::Attention(const AttentionBlock& block,
                                                    CpuActivation x) {
  ConvShape shape = {.batch = x.n, .frames = x.t, .height = x.h, .width = x.w};
  FF_ASSIGN_OR_RETURN(CpuActivation y, Allocate(x.n, x.t, x.h, x.w, x.c));
  FF_ASSIGN_OR_RETURN(CpuActivation qkv, Allocate(x.n, x.t, x.h, x.w, 3 * x.c));
  NormalizeRows(x.data(), x.n * x.t * x.h * x.w, x.c,
                layers_.gammas[block.norm.gamma].data(), /*silu=*/false,
                y.data());
  FF_RETURN_IF_ERROR(Observe(block.norm.module, y, /*per_frame=*/true));
  FF_RETURN_IF_ERROR(RunConv(block.to_qkv, shape, y.data(), qkv.data()));
  FF_RETURN_IF_ERROR(Observe(block.to_qkv.module, qkv, /*per_frame=*/true));
  FF_RETURN_IF_ERROR(Attend(qkv, y));
  if (observer_ == nullptr) {
    shape.accumulate = true;
    FF_RETURN_IF_ERROR(RunConv(block.proj, shape, y.data(), x.data()));
    return x;
  }
  FF_ASSIGN_OR_RETURN(CpuActivation out, Allocate(x.n, x.t, x.h, x.w, x.c));
  FF_RETURN_IF_ERROR(RunConv(block.proj, shape, y.data(), out.data()));
  FF_RETURN_IF_ERROR(Observe(block.proj.module, out, /*per_frame=*/true));
  AddTo(out.data(), x.data(), x.size());
  FF_RETURN_IF_ERROR(Observe(block.module, out));
  return out;
}

absl::StatusOr<CpuActivation> CpuForward::Mid(const MidBlock& block,
                                              CpuActivation x) {
  FF_ASSIGN_OR_RETURN(x, Resnet(block.resnet0, std::move(x)));
  FF_ASSIGN_OR_RETURN(x, Attention(block.attention, std::move(x)));
  FF_ASSIGN_OR_RETURN(x, Resnet(block.resnet1, std::move(x)));
  FF_RETURN_IF_ERROR(Observe(block.module, x));
  return x;
}

absl::StatusOr<CpuActivation> CpuForward::Head(const NormLayer& norm,
                                               int nonlinearity,
                                               const ConvLayer& conv,
                                               const CpuActivation& x) {
  return NormSiluConv(norm, nonlinearity, /*dropout=*/-1, conv, x, nullptr);
}

absl::StatusOr<CpuActivation> CpuForward::DecodeChunk(CpuActivation x) {
  const DecoderGraph& decoder = layers_.tree->decoder;
  FF_ASSIGN_OR_RETURN(x, CausalOn(decoder.conv_in, x));
  FF_ASSIGN_OR_RETURN(x, Mid(decoder.mid_block, std::move(x)));
  for (const UpBlock& block : decoder.up_blocks) {
    for (const ResnetBlock& resnet : block.resnets) {
      FF_ASSIGN_OR_RETURN(x, Resnet(resnet, std::move(x)));
    }
    if (block.has_upsampler) {
      FF_ASSIGN_OR_RETURN(x, Upsample(block.upsampler, std::move(x)));
    }
    FF_RETURN_IF_ERROR(Observe(block.module, x));
  }
  FF_ASSIGN_OR_RETURN(
      x, Head(decoder.norm_out, decoder.nonlinearity, decoder.conv_out, x));
  FF_RETURN_IF_ERROR(Observe(decoder.module, x));
  return x;
}

absl::StatusOr<CpuActivation> CpuForward::EncodeChunk(CpuActivation x) {
  const EncoderGraph& encoder = layers_.tree->encoder;
  FF_ASSIGN_OR_RETURN(x, CausalOn(encoder.conv_in, x));
  for (const DownBlock& block : encoder.down_blocks) {
    if (block.is_resample) {
      FF_ASSIGN_OR_RETURN(x, Downsample(block.resample, std::move(x)));
    } else {
      FF_ASSIGN_OR_RETURN(x, Resnet(block.resnet, std::move(x)));
    }
  }
  FF_ASSIGN_OR_RETURN(x, Mid(encoder.mid_block, std::move(x)));
  FF_ASSIGN_OR_RETURN(
      x, Head(encoder.norm_out, encoder.nonlinearity, encoder.conv_out, x));
  FF_RETURN_IF_ERROR(Observe(encoder.module, x));
  return x;
}

}  // namespace firstframe
