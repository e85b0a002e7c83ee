#include "lib/wan_vae/module_tree.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

// Adds modules depth first, in the order in which diffusers' constructors
// register them.
class TreeBuilder {
 public:
  explicit TreeBuilder(const WanVaeConfig& config) : config_(config) {}

  ModuleTree Build() {
    const int root = Add(-1, "", ModuleKind::kModel);
    BuildEncoder(root);
    const int64_t z = config_.z_dim;
    tree_.quant_conv = Conv3d(root, "quant_conv", 2 * z, 2 * z, {1, 1, 1});
    tree_.post_quant_conv = Conv3d(root, "post_quant_conv", z, z, {1, 1, 1});
    BuildDecoder(root);
    return std::move(tree_);
  }

 private:
  static constexpr std::array<int64_t, 3> kCube = {3, 3, 3};

  int Add(int parent, absl::string_view name, ModuleKind kind) {
    Module module = {.name = std::string(name), .kind = kind, .parent = parent};
    if (parent > 0) {
      module.name = absl::StrCat(tree_.modules[parent].name, ".", name);
    }
    tree_.modules.push_back(std::move(module));
    return static_cast<int>(tree_.modules.size()) - 1;
  }

  int Parameter(int module, absl::string_view name, Shape shape) {
    tree_.parameters.push_back(
        {absl::StrCat(tree_.modules[module].name, ".", name),
         std::move(shape)});
    return static_cast<int>(tree_.parameters.size()) - 1;
  }

  ConvLayer Conv3d(int parent, absl::string_view name, int64_t in, int64_t out,
                   std::array<int64_t, 3> kernel) {
    ConvLayer conv = {.in_channels = in, .out_channels = out, .kernel = kernel};
    conv.module = Add(parent, name, ModuleKind::kCausalConv3d);
    conv.padding = {kernel[1] / 2, kernel[2] / 2};
    conv.weight = Parameter(conv.module, "weight",
                            {out, in, kernel[0], kernel[1], kernel[2]});
    conv.bias = Parameter(conv.module, "bias", {out});
    return conv;
  }

  ConvLayer Conv2d(int parent, absl::string_view name, int64_t in, int64_t out,
                   int64_t kernel) {
    ConvLayer conv = {
        .in_channels = in, .out_channels = out, .kernel = {1, kernel, kernel}};
    conv.module = Add(parent, name, ModuleKind::kConv2d);
    conv.padding = {kernel / 2, kernel / 2};
    conv.weight = Parameter(conv.module, "weight", {out, in, kernel, kernel});
    conv.bias = Parameter(conv.module, "bias", {out});
    return conv;
  }

  NormLayer Norm(int parent, absl::string_view name, int64_t channels,
                 bool images = false) {
    NormLayer norm = {.channels = channels};
    norm.module = Add(parent, name, ModuleKind::kRmsNorm);
    Shape shape = {channels, 1, 1};
    if (!images) shape.push_back(1);
    norm.gamma = Parameter(norm.module, "gamma", std::move(shape));
    return norm;
  }

  ResnetBlock Resnet(int parent, absl::string_view name, int64_t in,
                     int64_t out) {
    ResnetBlock block;
    block.module = Add(parent, name, ModuleKind::kResnet);
    block.nonlinearity = Add(block.module, "nonlinearity", ModuleKind::kSilu);
    block.norm1 = Norm(block.module, "norm1", in);
    block.conv1 = Conv3d(block.module, "conv1", in, out, kCube);
    block.norm2 = Norm(block.module, "norm2", out);
    block.dropout = Add(block.module, "dropout", ModuleKind::kDropout);
    block.conv2 = Conv3d(block.module, "conv2", out, out, kCube);
    block.has_shortcut = in != out;
    if (block.has_shortcut) {
      block.conv_shortcut =
          Conv3d(block.module, "conv_shortcut", in, out, {1, 1, 1});
    } else {
      block.conv_shortcut.module =
          Add(block.module, "conv_shortcut", ModuleKind::kIdentity);
    }
    return block;
  }

  AttentionBlock Attention(int parent, absl::string_view name,
                           int64_t channels) {
    AttentionBlock block;
    block.module = Add(parent, name, ModuleKind::kAttention);
    block.norm = Norm(block.module, "norm", channels, /*images=*/true);
    block.to_qkv = Conv2d(block.module, "to_qkv", channels, 3 * channels, 1);
    block.proj = Conv2d(block.module, "proj", channels, channels, 1);
    return block;
  }

  MidBlock Mid(int parent, int64_t channels) {
    MidBlock block;
    block.module = Add(parent, "mid_block", ModuleKind::kMidBlock);
    const int attentions = Add(block.module, "attentions", ModuleKind::kList);
    block.attention = Attention(attentions, "0", channels);
    const int resnets = Add(block.module, "resnets", ModuleKind::kList);
    block.resnet0 = Resnet(resnets, "0", channels, channels);
    block.resnet1 = Resnet(resnets, "1", channels, channels);
    return block;
  }

  ResampleBlock Upsampler(int parent, absl::string_view name, int64_t channels,
                          bool temporal) {
    ResampleBlock block = {.has_time_conv = temporal};
    block.module = Add(parent, name, ModuleKind::kResample);
    block.sequential = Add(block.module, "resample", ModuleKind::kSequential);
    block.reshape = Add(block.sequential, "0", ModuleKind::kUpsample);
    block.conv = Conv2d(block.sequential, "1", channels, channels / 2, 3);
    if (temporal) {
      block.time_conv =
          Conv3d(block.module, "time_conv", channels, 2 * channels, {3, 1, 1});
    }
    return block;
  }

  ResampleBlock Downsampler(int parent, absl::string_view name,
                            int64_t channels, bool temporal) {
    ResampleBlock block = {.has_time_conv = temporal};
    block.module = Add(parent, name, ModuleKind::kResample);
    block.sequential = Add(block.module, "resample", ModuleKind::kSequential);
    block.reshape = Add(block.sequential, "0", ModuleKind::kZeroPad2d);
    block.conv = Conv2d(block.sequential, "1", channels, channels, 3);
    block.conv.stride = {1, 2, 2};
    block.conv.padding = {0, 0};  // kZeroPad2d did it, on two sides only
    if (temporal) {
      block.time_conv =
          Conv3d(block.module, "time_conv", channels, channels, {3, 1, 1});
      block.time_conv.stride = {2, 1, 1};
    }
    return block;
  }

  void BuildEncoder(int root) {
    EncoderGraph& encoder = tree_.encoder;
    encoder.module = Add(root, "encoder", ModuleKind::kEncoder);
    encoder.nonlinearity =
        Add(encoder.module, "nonlinearity", ModuleKind::kSilu);
    int64_t in = config_.base_dim;
    encoder.conv_in =
        Conv3d(encoder.module, "conv_in", config_.in_channels, in, kCube);
    const int list = Add(encoder.module, "down_blocks", ModuleKind::kList);
    const auto next_name = [&] {
      return absl::StrCat(encoder.down_blocks.size());
    };
    const size_t num_levels = config_.dim_mult.size();
    for (size_t level = 0; level < num_levels; ++level) {
      const int64_t out = config_.base_dim * config_.dim_mult[level];
      for (int64_t i = 0; i < config_.num_res_blocks; ++i) {
        encoder.down_blocks.push_back(
            {.resnet = Resnet(list, next_name(), in, out)});
        in = out;
      }
      if (level + 1 < num_levels) {
        encoder.down_blocks.push_back(
            {.is_resample = true,
             .resample = Downsampler(list, next_name(), out,
                                     config_.temporal_downsample[level])});
      }
    }
    encoder.mid_block = Mid(encoder.module, in);
    encoder.norm_out = Norm(encoder.module, "norm_out", in);
    encoder.conv_out =
        Conv3d(encoder.module, "conv_out", in, 2 * config_.z_dim, kCube);
  }

  void BuildDecoder(int root) {
    DecoderGraph& decoder = tree_.decoder;
    decoder.module = Add(root, "decoder", ModuleKind::kDecoder);
    decoder.nonlinearity =
        Add(decoder.module, "nonlinearity", ModuleKind::kSilu);
    const int64_t dim = config_.decoder_base_dim;
    const size_t num_levels = config_.dim_mult.size();
    int64_t in = dim * config_.dim_mult.back();
    decoder.conv_in =
        Conv3d(decoder.module, "conv_in", config_.z_dim, in, kCube);
    decoder.mid_block = Mid(decoder.module, in);
    const int list = Add(decoder.module, "up_blocks", ModuleKind::kList);
    for (size_t level = 0; level < num_levels; ++level) {
      const int64_t out = dim * config_.dim_mult[num_levels - 1 - level];
      UpBlock block;
      block.module = Add(list, absl::StrCat(level), ModuleKind::kUpBlock);
      const int resnets = Add(block.module, "resnets", ModuleKind::kList);
      for (int64_t i = 0; i <= config_.num_res_blocks; ++i) {
        block.resnets.push_back(Resnet(resnets, absl::StrCat(i), in, out));
        in = out;
      }
      block.has_upsampler = level + 1 < num_levels;
      if (block.has_upsampler) {
        const int upsamplers =
            Add(block.module, "upsamplers", ModuleKind::kList);
        // The encoder's list, read backwards.
        const bool temporal =
            config_.temporal_downsample[num_levels - 2 - level];
        block.upsampler = Upsampler(upsamplers, "0", out, temporal);
        in = out / 2;
      }
      decoder.up_blocks.push_back(std::move(block));
    }
    decoder.norm_out = Norm(decoder.module, "norm_out", in);
    decoder.conv_out =
        Conv3d(decoder.module, "conv_out", in, config_.out_channels, kCube);
  }

  const WanVaeConfig& config_;
  ModuleTree tree_;
};

}  // namespace

bool IsEncoderParameter(const ParameterSpec& spec) {
  return absl::StartsWith(spec.name, "encoder.") ||
         absl::StartsWith(spec.name, "quant_conv.");
}

ModuleTree BuildModuleTree(const WanVaeConfig& config) {
  return TreeBuilder(config).Build();
}

absl::string_view ModuleKindName(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kModel:
      return "AutoencoderKLWan";
    case ModuleKind::kEncoder:
      return "WanEncoder3d";
    case ModuleKind::kDecoder:
      return "WanDecoder3d";
    case ModuleKind::kList:
      return "ModuleList";
    case ModuleKind::kSequential:
      return "Sequential";
    case ModuleKind::kResnet:
      return "WanResidualBlock";
    case ModuleKind::kAttention:
      return "WanAttentionBlock";
    case ModuleKind::kMidBlock:
      return "WanMidBlock";
    case ModuleKind::kUpBlock:
      return "WanUpBlock";
    case ModuleKind::kResample:
      return "WanResample";
    case ModuleKind::kCausalConv3d:
      return "WanCausalConv3d";
    case ModuleKind::kConv2d:
      return "Conv2d";
    case ModuleKind::kRmsNorm:
      return "WanRMS_norm";
    case ModuleKind::kSilu:
      return "SiLU";
    case ModuleKind::kDropout:
      return "Dropout";
    case ModuleKind::kIdentity:
      return "Identity";
    case ModuleKind::kUpsample:
      return "WanUpsample";
    case ModuleKind::kZeroPad2d:
      return "ZeroPad2d";
  }
  return "";
}

}  // namespace firstframe
