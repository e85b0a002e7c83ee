#include "lib/flops/wan_vae_cost.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr int64_t kCausalKernel = 27;  // 3x3x3
constexpr int64_t kSpatialKernel = 9;
constexpr int64_t kTemporalKernel = 3;

// Sums operators by stage of the network; a chunk of frames at a time.
class VaeCounter {
 public:
  VaeCounter(const WanVaeCostConfig& config, int64_t batch)
      : config_(config), batch_(batch) {}

  void DecodeChunk(int64_t height, int64_t width, bool is_first);
  void EncodeChunk(int64_t height, int64_t width, bool is_first);
  void PointwiseConvolution(const std::string& stage, int64_t frames,
                            int64_t height, int64_t width, int64_t channels) {
    frames_ = frames, height_ = height, width_ = width;
    Convolution(stage, 1, channels, channels);
  }
  ForwardCost Take();

 private:
  int64_t Positions() const {
    return SaturatingProduct({batch_, frames_, height_, width_});
  }
  void Accumulate(OperatorCost cost) {
    const auto [it, inserted] = sums_.try_emplace(cost.name, cost);
    if (inserted) {
      order_.push_back(cost.name);
      return;
    }
    OperatorCost& sum = it->second;
    sum.flops = SaturatingSum(sum.flops, cost.flops);
    sum.input_elements = SaturatingSum(sum.input_elements, cost.input_elements);
    sum.weight_elements =
        SaturatingSum(sum.weight_elements, cost.weight_elements);
    sum.output_elements =
        SaturatingSum(sum.output_elements, cost.output_elements);
  }
  // Output positions are the current frames x height x width.
  void Convolution(const std::string& stage, int64_t volume,
                   int64_t in_channels, int64_t out_channels,
                   int64_t input_ratio = 1) {
    Accumulate(ConvolutionCost(stage, OperatorClass::kConvolution,
                               SaturatingProduct({Positions(), input_ratio}),
                               Positions(), volume, in_channels, out_channels));
  }
  void ResidualBlock(const std::string& stage, int64_t in_channels,
                     int64_t out_channels) {
    Convolution(stage, kCausalKernel, in_channels, out_channels);
    Convolution(stage, kCausalKernel, out_channels, out_channels);
    if (in_channels != out_channels) {
      Convolution(stage, 1, in_channels, out_channels);
    }
  }
  void MidBlock(const std::string& stage, int64_t channels);

  const WanVaeCostConfig& config_;
  const int64_t batch_;
  int64_t frames_ = 1;
  int64_t height_ = 0;
  int64_t width_ = 0;
  std::map<std::string, OperatorCost> sums_;
  std::vector<std::string> order_;
};

// Single-head attention within each frame, between two residual blocks.
void VaeCounter::MidBlock(const std::string& stage, int64_t channels) {
  ResidualBlock(stage, channels, channels);
  Convolution(stage, 1, channels, 3 * channels);
  const int64_t area = SaturatingProduct({height_, width_});
  Accumulate(AttentionCost(
      stage + ".attention_core", OperatorClass::kSelfAttentionCore,
      SaturatingProduct({batch_, frames_}), 1, area, area, channels));
  Convolution(stage, 1, channels, channels);
  ResidualBlock(stage, channels, channels);
}

void VaeCounter::DecodeChunk(int64_t height, int64_t width, bool is_first) {
  frames_ = 1, height_ = height, width_ = width;
  const std::vector<int64_t>& mult = config_.dim_mult;
  const int64_t levels = static_cast<int64_t>(mult.size());
  const int64_t base = config_.decoder_base_dim;
  int64_t channels = SaturatingProduct({base, mult.back()});
  Convolution("decoder.conv_in", kCausalKernel, config_.z_dim, channels);
  MidBlock("decoder.mid_block", channels);
  for (int64_t level = 0; level < levels; ++level) {
    const std::string stage = absl::StrCat("decoder.up_blocks.", level);
    const int64_t out = SaturatingProduct({base, mult[levels - 1 - level]});
    for (int64_t i = 0; i <= config_.num_res_blocks; ++i) {
      ResidualBlock(stage, channels, out);
      channels = out;
    }
    if (level == levels - 1) break;
    if (config_.temporal_downsample[levels - 2 - level] && !is_first) {
      Convolution(stage, kTemporalKernel, channels, 2 * channels);
      frames_ *= 2;
    }
    height_ *= 2;
    width_ *= 2;
    const int64_t next = config_.is_residual ? channels : channels / 2;
    Convolution(stage, kSpatialKernel, channels, next);
    channels = next;
  }
  Convolution("decoder.conv_out", kCausalKernel, channels,
              config_.out_channels);
}

void VaeCounter::EncodeChunk(int64_t height, int64_t width, bool is_first) {
  frames_ = is_first ? 1 : 4;
  height_ = height, width_ = width;
  const int64_t levels = static_cast<int64_t>(config_.dim_mult.size());
  int64_t channels = config_.base_dim;
  Convolution("encoder.conv_in", kCausalKernel, config_.in_channels, channels);
  for (int64_t level = 0; level < levels; ++level) {
    const std::string stage = absl::StrCat("encoder.down_blocks.", level);
    const int64_t out =
        SaturatingProduct({config_.base_dim, config_.dim_mult[level]});
    for (int64_t i = 0; i < config_.num_res_blocks; ++i) {
      ResidualBlock(stage, channels, out);
      channels = out;
    }
    if (level == levels - 1) break;
    height_ /= 2;
    width_ /= 2;
    Convolution(stage, kSpatialKernel, channels, channels, /*input_ratio=*/4);
    if (config_.temporal_downsample[level] && !is_first) {
      frames_ /= 2;
      Convolution(stage, kTemporalKernel, channels, channels,
                  /*input_ratio=*/2);
    }
  }
  MidBlock("encoder.mid_block", channels);
  Convolution("encoder.conv_out", kCausalKernel, channels, 2 * config_.z_dim);
  Convolution("quant_conv", 1, 2 * config_.z_dim, 2 * config_.z_dim);
}

ForwardCost VaeCounter::Take() {
  ForwardCost cost;
  for (const std::string& name : order_) {
    cost.operators.push_back(std::move(sums_.at(name)));
  }
  return cost;
}

absl::Status CheckRange(const char* name, int64_t value, int64_t low,
                        int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "vae: ", name, " is ", value, ", expected ", low, " to ", high));
}

absl::Status Validate(const WanVaeCostConfig& config, int64_t batch,
                      int64_t frames, int64_t height, int64_t width,
                      const VaeTiling& tiling) {
  constexpr int64_t kMaxWidth = 1 << 20;
  constexpr size_t kMaxLevels = 16;
  constexpr int64_t kMaxTiles = 1 << 20;
  FF_RETURN_IF_ERROR(CheckRange("base_dim", config.base_dim, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(
      CheckRange("decoder_base_dim", config.decoder_base_dim, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(CheckRange("z_dim", config.z_dim, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(
      CheckRange("num_res_blocks", config.num_res_blocks, 1, 1024));
  FF_RETURN_IF_ERROR(
      CheckRange("in_channels", config.in_channels, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(
      CheckRange("out_channels", config.out_channels, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(CheckRange("patch_size", config.patch_size, 1, 64));
  FF_RETURN_IF_ERROR(CheckRange("batch", batch, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(CheckRange("frames", frames, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(CheckRange("height", height, 1, kMaxWidth));
  FF_RETURN_IF_ERROR(CheckRange("width", width, 1, kMaxWidth));
  if (config.dim_mult.empty() || config.dim_mult.size() > kMaxLevels ||
      config.temporal_downsample.size() + 1 < config.dim_mult.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "vae: dim_mult has ", config.dim_mult.size(),
        " levels and temperal_downsample ", config.temporal_downsample.size(),
        ", expected 1 to ", kMaxLevels, " and one less"));
  }
  for (const int64_t mult : config.dim_mult) {
    FF_RETURN_IF_ERROR(CheckRange("dim_mult", mult, 1, 1024));
  }
  if (tiling.tile_pixels != 0) {
    FF_RETURN_IF_ERROR(CheckRange("tile", tiling.tile_pixels, 1, kMaxWidth));
    FF_RETURN_IF_ERROR(
        CheckRange("tile stride", tiling.stride_pixels, 1, tiling.tile_pixels));
    FF_RETURN_IF_ERROR(CheckRange("number of tiles",
                                  (height / tiling.stride_pixels + 1) *
                                      (width / tiling.stride_pixels + 1),
                                  1, kMaxTiles));
  }
  return absl::OkStatus();
}

// Sizes of the tiles that cover `length`; the last ones may be cut short.
std::map<int64_t, int64_t> TileSizes(int64_t length, int64_t tile,
                                     int64_t stride) {
  std::map<int64_t, int64_t> counts;
  for (int64_t start = 0; start < length; start += stride) {
    ++counts[std::min(tile, length - start)];
  }
  return counts;
}

// Calls `visit(height, width)` for every tile of the plane.
template <typename Visitor>
void ForEachTile(int64_t height, int64_t width, int64_t tile, int64_t stride,
                 const Visitor& visit) {
  for (const auto& [tile_height, rows] : TileSizes(height, tile, stride)) {
    for (const auto& [tile_width, columns] : TileSizes(width, tile, stride)) {
      for (int64_t i = 0; i < rows * columns; ++i)
        visit(tile_height, tile_width);
    }
  }
}

absl::StatusOr<ForwardCost> Finish(VaeCounter& counter) {
  ForwardCost cost = counter.Take();
  if (cost.TotalFlops() == kSaturatedFlops) {
    return absl::OutOfRangeError("vae: the cost is more than 2^63 operations");
  }
  return cost;
}

}  // namespace

int64_t WanVaeSpatialFactor(const WanVaeCostConfig& config) {
  const size_t levels = std::clamp<size_t>(config.dim_mult.size(), 1, 16);
  return config.patch_size << (levels - 1);
}

absl::StatusOr<ForwardCost> WanVaeDecodeCost(
    const WanVaeCostConfig& config, int64_t batch, int64_t latent_frames,
    int64_t latent_height, int64_t latent_width, const VaeTiling& tiling) {
  FF_RETURN_IF_ERROR(Validate(config, batch, latent_frames, latent_height,
                              latent_width, tiling));
  const int64_t factor = WanVaeSpatialFactor(config);
  const int64_t tile = tiling.tile_pixels / factor;
  const int64_t stride = tiling.stride_pixels / factor;
  if (tiling.tile_pixels > 0 && stride < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("vae: a tile stride of ", tiling.stride_pixels,
                     " pixels is less than one latent of ", factor));
  }
  VaeCounter counter(config, batch);
  const auto decode = [&](int64_t height, int64_t width) {
    counter.PointwiseConvolution("post_quant_conv", latent_frames, height,
                                 width, config.z_dim);
    for (int64_t frame = 0; frame < latent_frames; ++frame) {
      counter.DecodeChunk(height, width, /*is_first=*/frame == 0);
    }
  };
  if (tiling.tile_pixels > 0 && (latent_width > tile || latent_height > tile)) {
    ForEachTile(latent_height, latent_width, tile, stride, decode);
  } else {
    decode(latent_height, latent_width);
  }
  return Finish(counter);
}

absl::StatusOr<ForwardCost> WanVaeEncodeCost(const WanVaeCostConfig& config,
                                             int64_t batch, int64_t frames,
                                             int64_t height, int64_t width,
                                             const VaeTiling& tiling) {
  FF_RETURN_IF_ERROR(Validate(config, batch, frames, height, width, tiling));
  VaeCounter counter(config, batch);
  const auto encode = [&](int64_t tile_height, int64_t tile_width) {
    for (int64_t chunk = 0; chunk <= (frames - 1) / 4; ++chunk) {
      counter.EncodeChunk(tile_height, tile_width, /*is_first=*/chunk == 0);
    }
  };
  const int64_t patched_height = height / config.patch_size;
  const int64_t patched_width = width / config.patch_size;
  // The original compares the unpatched size with the tile, then cuts tiles of
  // that many patched pixels.
  if (tiling.tile_pixels > 0 &&
      (width > tiling.tile_pixels || height > tiling.tile_pixels)) {
    ForEachTile(patched_height, patched_width, tiling.tile_pixels,
                tiling.stride_pixels, encode);
  } else {
    encode(patched_height, patched_width);
  }
  return Finish(counter);
}

}  // namespace firstframe
