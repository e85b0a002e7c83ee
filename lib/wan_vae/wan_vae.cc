#include "lib/wan_vae/wan_vae.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// The encoder takes the first frame alone, then this many at a time, whatever
// its temporal factor (diffusers fixes it so).
constexpr int64_t kEncoderChunk = 4;

// Keeps sizes of intermediate tensors within int64 (and a run within reason).
constexpr int64_t kMaxExtent = int64_t{1} << 20;

// Copies `view` into an owned tensor after checking type and rank.
absl::StatusOr<FloatTensor> Take(const TensorView& view, absl::string_view what,
                                 absl::string_view axes, int64_t channels) {
  if (view.dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " are ", DTypeName(view.dtype), ", expected F32"));
  }
  const std::optional<int64_t> bytes = CheckedSizeBytes(view.dtype, view.shape);
  bool fits = view.shape.size() == 5 && bytes && *bytes > 0 &&
              view.shape[1] == channels;
  for (int64_t extent : view.shape) fits = fits && extent <= kMaxExtent;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " have shape ", ShapeToString(view.shape),
                     ", expected ", axes, " with ", channels, " channels"));
  }
  if (static_cast<int64_t>(view.bytes.size()) != *bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " hold ", view.bytes.size(), " bytes, expected ",
                     *bytes, " for ", ShapeToString(view.shape)));
  }
  FloatTensor tensor = {.shape = view.shape};
  tensor.values.resize(*bytes / sizeof(float));
  std::memcpy(tensor.values.data(), view.bytes.data(), *bytes);
  return tensor;
}

absl::Status CheckTiling(const TilingOptions& tiling, int64_t factor) {
  const auto check = [&](absl::string_view axis, int64_t least,
                         int64_t stride) -> absl::Status {
    if (stride >= factor && least >= stride && least % factor == 0 &&
        stride % factor == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "tile ", axis, " ", least, " with stride ", stride,
        ", expected multiples of ", factor, " with 0 < stride <= ", axis));
  };
  FF_RETURN_IF_ERROR(check("height", tiling.min_height, tiling.stride_height));
  return check("width", tiling.min_width, tiling.stride_width);
}

TileGrid Scaled(const TilingOptions& tiling, int64_t divisor) {
  return {.tile_height = tiling.min_height / divisor,
          .tile_width = tiling.min_width / divisor,
          .stride_height = tiling.stride_height / divisor,
          .stride_width = tiling.stride_width / divisor};
}

bool NeedsTiles(const FloatTensor& input, const TileGrid& grid) {
  return input.shape[3] > grid.tile_height || input.shape[4] > grid.tile_width;
}

// Turns the share of a tile that is done into the share of the run, and asks
// for cancellation.
std::function<absl::Status(double)> MakeCheckpoint(const RunOptions& options,
                                                   int64_t tile,
                                                   int64_t count) {
  return [&options, tile, count](double done) -> absl::Status {
    if (options.is_cancelled && options.is_cancelled()) {
      return absl::CancelledError("the run was cancelled");
    }
    if (options.progress) {
      options.progress(
          (static_cast<double>(tile) + std::clamp(done, 0.0, 1.0)) /
          static_cast<double>(count));
    }
    return absl::OkStatus();
  };
}

// `run` maps an input tile to its result. `in` and `out` are the same grid on
// either side.
template <typename RunTile>
absl::StatusOr<FloatTensor> RunTiled(const FloatTensor& input,
                                     const TileGrid& in, const TileGrid& out,
                                     int64_t out_height, int64_t out_width,
                                     const RunOptions& options,
                                     const RunTile& run) {
  const int64_t height = input.shape[3], width = input.shape[4];
  const int64_t across = (width + in.stride_width - 1) / in.stride_width;
  const int64_t down = (height + in.stride_height - 1) / in.stride_height;
  std::vector<std::vector<FloatTensor>> rows(down);
  for (int64_t i = 0; i < down; ++i) {
    for (int64_t j = 0; j < across; ++j) {
      const FloatTensor tile =
          CropSpatially(input, i * in.stride_height, j * in.stride_width,
                        in.tile_height, in.tile_width);
      FF_ASSIGN_OR_RETURN(
          FloatTensor result,
          run(tile, MakeCheckpoint(options, i * across + j, down * across)));
      rows[i].push_back(std::move(result));
    }
  }
  return BlendTiles(std::move(rows), out, out_height, out_width);
}

EncodeResult SplitMoments(const FloatTensor& moments) {
  EncodeResult result;
  const int64_t batch = moments.shape[0];
  const int64_t half = static_cast<int64_t>(moments.values.size()) / batch / 2;
  for (FloatTensor* part : {&result.mean, &result.logvar}) {
    part->shape = moments.shape;
    part->shape[1] /= 2;
    part->values.reserve(batch * half);
  }
  for (int64_t b = 0; b < batch; ++b) {
    const float* from = moments.values.data() + 2 * b * half;
    result.mean.values.insert(result.mean.values.end(), from, from + half);
    for (int64_t i = half; i < 2 * half; ++i) {
      result.logvar.values.push_back(std::clamp(from[i], -30.0f, 20.0f));
    }
  }
  return result;
}

template <typename Apply>
void ForEachChannel(const WanVaeConfig& config, FloatTensor& latents,
                    const Apply& apply) {
  const int64_t channels = config.z_dim;
  const int64_t planes = latents.shape[0] * channels;
  const int64_t plane = static_cast<int64_t>(latents.values.size()) / planes;
  for (int64_t p = 0; p < planes; ++p) {
    const float mean = static_cast<float>(config.latents_mean[p % channels]);
    const float std = static_cast<float>(config.latents_std[p % channels]);
    for (int64_t i = 0; i < plane; ++i) {
      float& value = latents.values[p * plane + i];
      value = apply(value, mean, std);
    }
  }
}

}  // namespace

TensorView ViewOf(const FloatTensor& tensor) {
  return {.dtype = DType::kF32,
          .shape = tensor.shape,
          .bytes = {reinterpret_cast<const std::byte*>(tensor.values.data()),
                    tensor.values.size() * sizeof(float)}};
}

absl::Status WanVae::CheckFinalized() const {
  if (is_finalized()) return absl::OkStatus();
  return absl::FailedPreconditionError("the weights are not loaded");
}

absl::StatusOr<std::vector<bool>> WanVae::TakeParameters(
    absl::Span<const TensorView> values, absl::Span<const HostBlock>) {
  return std::vector<bool>(values.size());
}

absl::StatusOr<FloatTensor> WanVae::Decode(const TensorView& latents,
                                           const RunOptions& options) {
  FF_RETURN_IF_ERROR(CheckFinalized());
  FF_ASSIGN_OR_RETURN(
      const FloatTensor input,
      Take(latents, "latents", "[batch, channels, frames, height, width]",
           config_.z_dim));
  const int64_t factor = config_.SpatialFactor();
  ChunkContext context = {.observer = options.observer};
  const auto run = [&](const FloatTensor& tile,
                       std::function<absl::Status(double)> checkpoint) {
    context.checkpoint = std::move(checkpoint);
    return DecodeTile(tile, context);
  };
  FloatTensor samples;
  if (options.tiling) FF_RETURN_IF_ERROR(CheckTiling(*options.tiling, factor));
  if (options.tiling && NeedsTiles(input, Scaled(*options.tiling, factor))) {
    context.quant_conv_per_chunk = true;
    FF_ASSIGN_OR_RETURN(
        samples, RunTiled(input, Scaled(*options.tiling, factor),
                          Scaled(*options.tiling, 1), input.shape[3] * factor,
                          input.shape[4] * factor, options, run));
  } else {
    FF_ASSIGN_OR_RETURN(samples, run(input, MakeCheckpoint(options, 0, 1)));
  }
  // As torch.clamp: NaN stays NaN.
  ParallelFor(static_cast<int64_t>(samples.values.size()), 1 << 18,
              [&samples](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  float& value = samples.values[i];
                  value = std::clamp(value, -1.0f, 1.0f);
                }
              });
  return samples;
}

absl::StatusOr<EncodeResult> WanVae::Encode(const TensorView& samples,
                                            const RunOptions& options) {
  FF_RETURN_IF_ERROR(CheckFinalized());
  FF_ASSIGN_OR_RETURN(
      const FloatTensor input,
      Take(samples, "samples", "[batch, channels, frames, height, width]",
           config_.in_channels));
  const int64_t factor = config_.SpatialFactor();
  if ((input.shape[2] - 1) % kEncoderChunk != 0 ||
      input.shape[3] % factor != 0 || input.shape[4] % factor != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "samples have shape ", ShapeToString(input.shape), ", expected 1 + ",
        kEncoderChunk, "k frames, height and width multiples of ", factor));
  }
  ChunkContext context = {.observer = options.observer};
  const auto run = [&](const FloatTensor& tile,
                       std::function<absl::Status(double)> checkpoint) {
    context.checkpoint = std::move(checkpoint);
    return EncodeTile(tile, context);
  };
  FloatTensor moments;
  if (options.tiling) FF_RETURN_IF_ERROR(CheckTiling(*options.tiling, factor));
  if (options.tiling && NeedsTiles(input, Scaled(*options.tiling, 1))) {
    context.quant_conv_per_chunk = true;
    FF_ASSIGN_OR_RETURN(
        moments,
        RunTiled(input, Scaled(*options.tiling, 1),
                 Scaled(*options.tiling, factor), input.shape[3] / factor,
                 input.shape[4] / factor, options, run));
  } else {
    FF_ASSIGN_OR_RETURN(moments, run(input, MakeCheckpoint(options, 0, 1)));
  }
  return SplitMoments(moments);
}

void DenormalizeLatents(const WanVaeConfig& config, FloatTensor& latents) {
  ForEachChannel(config, latents, [](float value, float mean, float std) {
    return value * std + mean;
  });
}

void NormalizeLatents(const WanVaeConfig& config, FloatTensor& latents) {
  ForEachChannel(config, latents, [](float value, float mean, float std) {
    return (value - mean) / std;
  });
}

}  // namespace firstframe
