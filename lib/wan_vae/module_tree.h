// The modules of a Wan VAE under the names that PyTorch's named_modules() gives
// them, and the typed structure that a backend walks.
//
// Module i of ModuleTree::modules is the i-th entry of named_modules() of
// diffusers' AutoencoderKLWan (the root, with the empty name, is 0). Containers
// (ModuleList) are there for their names; they produce no output of their own.

#ifndef LIB_WAN_VAE_MODULE_TREE_H_
#define LIB_WAN_VAE_MODULE_TREE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/config.h"

namespace firstframe {

enum class ModuleKind {
  kModel,
  kEncoder,
  kDecoder,
  kList,  // nn.ModuleList: never called
  kSequential,
  kResnet,
  kAttention,
  kMidBlock,
  kUpBlock,
  kResample,
  kCausalConv3d,
  kConv2d,
  kRmsNorm,
  kSilu,
  kDropout,
  kIdentity,
  kUpsample,   // nearest-exact, twice the height and width
  kZeroPad2d,  // one row below, one column to the right
};

struct Module {
  std::string name;  // "decoder.up_blocks.0.resnets.1.conv1"
  ModuleKind kind = ModuleKind::kModel;
  int parent = -1;
};

// A parameter, under its name in a Diffusers state_dict.
struct ParameterSpec {
  std::string name;
  Shape shape;
};

// Whether `spec` serves encoding alone: it is the encoder's, or quant_conv's.
bool IsEncoderParameter(const ParameterSpec& spec);

// Fields called `module` index ModuleTree::modules; weight, bias and gamma
// index ModuleTree::parameters.
struct ConvLayer {
  int module = -1;
  int weight = -1;  // [out, in, kt, kh, kw], or [out, in, kh, kw] of a Conv2d
  int bias = -1;    // [out]
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  // Time, height, width. A Conv2d has 1 in time.
  std::array<int64_t, 3> kernel = {1, 1, 1};
  std::array<int64_t, 3> stride = {1, 1, 1};
  // Zeros on both sides of height and width. In time the layer is causal: it
  // sees kernel[0] - 1 earlier frames, kept from the chunk before or zero.
  std::array<int64_t, 2> padding = {0, 0};
};

struct NormLayer {
  int module = -1;
  int gamma = -1;  // [channels, 1, 1, 1], or [channels, 1, 1] in an attention
  int64_t channels = 0;
};

// x + conv2(silu(norm2(conv1(silu(norm1(x)))))), with the first x through
// conv_shortcut where the channel count changes.
struct ResnetBlock {
  int module = -1;
  int nonlinearity = -1;  // runs twice
  NormLayer norm1;
  ConvLayer conv1;
  NormLayer norm2;
  int dropout = -1;
  ConvLayer conv2;
  bool has_shortcut = false;
  ConvLayer conv_shortcut;  // when !has_shortcut only .module is set (Identity)
};

// Single-head self-attention over the positions of each frame.
struct AttentionBlock {
  int module = -1;
  NormLayer norm;
  ConvLayer to_qkv;  // [3 * channels, channels, 1, 1]: q, k, v
  ConvLayer proj;
};

struct MidBlock {
  int module = -1;
  ResnetBlock resnet0;
  AttentionBlock attention;
  ResnetBlock resnet1;
};

// Doubles (decoder) or halves (encoder) height and width, and frames too when
// has_time_conv. Upsampling runs time_conv first, downsampling last; the first
// chunk of a run skips it.
struct ResampleBlock {
  int module = -1;
  int sequential = -1;  // "....resample"
  int reshape = -1;     // "....resample.0": kUpsample or kZeroPad2d
  ConvLayer conv = {};  // "....resample.1"
  bool has_time_conv = false;
  ConvLayer time_conv = {};
};

struct UpBlock {
  int module = -1;
  std::vector<ResnetBlock> resnets;
  bool has_upsampler = false;
  ResampleBlock upsampler = {};
};

// One entry of the encoder's flat down_blocks list.
struct DownBlock {
  bool is_resample = false;
  ResnetBlock resnet = {};
  ResampleBlock resample = {};
};

struct EncoderGraph {
  int module = -1;
  ConvLayer conv_in;
  std::vector<DownBlock> down_blocks;
  MidBlock mid_block;
  NormLayer norm_out;
  int nonlinearity = -1;
  ConvLayer conv_out;
};

struct DecoderGraph {
  int module = -1;
  ConvLayer conv_in;
  MidBlock mid_block;
  std::vector<UpBlock> up_blocks;
  NormLayer norm_out;
  int nonlinearity = -1;
  ConvLayer conv_out;
};

struct ModuleTree {
  std::vector<Module> modules;            // in the order of named_modules()
  std::vector<ParameterSpec> parameters;  // in the order of state_dict()
  EncoderGraph encoder;
  ConvLayer quant_conv;
  ConvLayer post_quant_conv;
  DecoderGraph decoder;
};

// `config` must be valid (ValidateWanVaeConfig).
ModuleTree BuildModuleTree(const WanVaeConfig& config);

// Returns the class of `kind` in PyTorch or diffusers: "WanCausalConv3d".
absl::string_view ModuleKindName(ModuleKind kind);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_MODULE_TREE_H_
