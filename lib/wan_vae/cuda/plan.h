// A run of the encoder or decoder as a list of kernel launches, with every
// frame placed before the first of them.
//
// Frames lie in one arena (conv_arguments.h), placed by what is free when a
// layer runs. A causal layer keeps the last frames of its input by not giving
// them back, so nothing is copied or joined. Where no later layer adds frames,
// the decoder goes frame by frame to the end, so that only one frame is whole
// at the largest sizes. The plan is made without a device; its peak is known
// before anything runs.

#ifndef LIB_WAN_VAE_CUDA_PLAN_H_
#define LIB_WAN_VAE_CUDA_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "lib/tensor/shape.h"
#include "lib/wan_vae/cuda/conv_variant.h"
#include "lib/wan_vae/module_tree.h"

namespace firstframe::cuda {

struct PlanOptions {
  ConvKernelKind kind = ConvKernelKind::kHopper;
  MathMode mode = MathMode::kFp32;
  // Runs every module on whole chunks and keeps its output apart, so that it
  // can be looked at.
  bool observed = false;
  // Tiled runs apply (post_)quant_conv to each chunk; others once.
  bool quant_conv_per_chunk = false;
};

// Arena slots are this far apart, so frames begin at multiples of it.
inline constexpr int64_t kSlotBytes = 16 * 1024;

// So far the host may be behind: it takes as long as some frames to get the
// pages of a long video's output.
inline constexpr int kChunkPlanes = 6;

enum class PlanOpKind : int {
  kFromPlanes,  // frames [in_frame, ...) of the input to slots of out_pool
  kConv,
  kNorm,
  kAdd,       // out slots += residual slots
  kPack,      // in slot [pixels, first_channel ...] becomes dynamic weights
  kSoftmax,   // rows of in_pool to probabilities in out_pool
  kToOutput,  // slots of in_pool to the output planes
  kPlanesToOutput,  // the chunk's planes to the output planes
  kObserve,
};

struct PlannedFrame {
  std::array<int, kMaxTimeTaps> in = {-1, -1, -1};
  std::array<int, 2> out = {-1, -1};
  int norm = -1;
  int residual = -1;
};

// One launch, or a few of the same kind. Which fields count depends on `kind`.
struct PlanOp {
  PlanOpKind kind = PlanOpKind::kConv;
  int module = -1;                   // the module that this is part of
  const ConvLayer* layer = nullptr;  // kConv: null takes the dynamic weights
  const NormLayer* norm = nullptr;   // kNorm (null: SiLU alone) or fused
  bool apply_silu = false;           // kNorm
  ConvVariant variant = {};          // kConv, kPack
  int in_channels = 0;               // kConv
  int out_channels = 0;              // kConv
  int split_channel = 0;             // kConv: 0 is no split
  int in_pool = -1;
  int out_pool = -1;
  int norm_pool = -1;
  int residual_pool = -1;
  std::vector<PlannedFrame> frames = {};  // at most kMaxFrames
  // kConv with `to_chunk_planes`: float32 planes; frame index in out[0] counts
  // from `batch_item * chunk planes`. There are kChunkPlanes, written by
  // turns, so that one can be read while others are written. kFromPlanes,
  // kToOutput, kPlanesToOutput: where in the input or output.
  bool to_chunk_planes = false;
  int planes = 0;  // which
  int batch_item = 0;
  int first_frame = 0;
  int num_frames = 0;
  // kPack: matrix [n, k] with k inner (keys) or n inner (values).
  int first_channel = 0;
  bool is_transposed = false;
  int pack_n = 0;
  int pack_k = 0;
  float scale = 1;  // kSoftmax
  // kObserve: shape as PyTorch has it; slots in the order [batch][frame], and
  // `folds` slots for one frame, each with its share of the channels.
  std::vector<int64_t> shape = {};
  bool per_frame = false;
  int folds = 1;
  int enlarge = 1;  // kObserve: each pixel this many times both ways
  std::vector<int> slots = {};
  double flops = 0;  // kConv
};

struct Plan {
  PlanOptions options;
  std::vector<FramePool> pools;  // sizes of frames; `data` is null
  std::vector<PlanOp> ops;
  int64_t frame_bytes = 0;  // of the arena's first part
  // Arena offsets of what is not a frame, and its whole size.
  int64_t dynamic_weights_offset = 0;
  int64_t dynamic_weights_bytes = 0;
  int64_t chunk_planes_offset = 0;  // [batch, channels, frames, h, w] float32
  int64_t chunk_planes_bytes = 0;   // of one of kChunkPlanes
  int64_t observe_offset = 0;       // room for the largest observed output
  int64_t observe_bytes = 0;
  int64_t arena_bytes = 0;
  int batch = 0;
  int out_channels = 0;
  int out_frames = 0;
  int out_height = 0;
  int out_width = 0;
  double conv_flops = 0;  // of the launches: zero frames are not multiplied
};

// `latent` and `samples` are [batch, channels, frames, height, width], valid
// for the model. `tree` must outlive the plan.
Plan PlanDecode(const ModuleTree& tree, const Shape& latent,
                const PlanOptions& options);
Plan PlanEncode(const ModuleTree& tree, const Shape& samples,
                const PlanOptions& options);

// The kernel that plans use for a layer, whatever the size.
ConvVariant VariantOf(const ModuleTree& tree, const ConvLayer& layer,
                      const PlanOptions& options);

// Layers whose weights a decode or an encode needs.
std::vector<const ConvLayer*> DecoderLayers(const ModuleTree& tree);
std::vector<const ConvLayer*> EncoderLayers(const ModuleTree& tree);
std::vector<const NormLayer*> DecoderNorms(const ModuleTree& tree);
std::vector<const NormLayer*> EncoderNorms(const ModuleTree& tree);

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_PLAN_H_
