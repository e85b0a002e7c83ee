// One run of the encoder or decoder over chunks of frames, on the CPU.

#ifndef LIB_WAN_VAE_CPU_FORWARD_H_
#define LIB_WAN_VAE_CPU_FORWARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/wan_vae/cpu_buffer.h"
#include "lib/wan_vae/cpu_conv.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/observer.h"

namespace firstframe {

// Channels-last [n, t, h, w, c], dense.
struct CpuActivation {
  int64_t n = 0, t = 0, h = 0, w = 0, c = 0;
  CpuBuffer buffer = {};

  float* data() const { return buffer.data(); }
  int64_t frame_size() const { return h * w * c; }
  int64_t size() const { return n * t * frame_size(); }
};

// What a model holds between runs. Indexed by module (convs) and by parameter
// (gammas).
struct CpuLayers {
  const ModuleTree* tree = nullptr;
  DnnlContext* context = nullptr;
  BufferPool* pool = nullptr;
  std::vector<std::unique_ptr<CpuConv>> convs;
  std::vector<std::vector<float>> gammas;
};

// Holds the frames that causal layers keep from chunk to chunk, so one object
// serves one tile, chunk after chunk, from its first. Thread-compatible.
class CpuForward {
 public:
  // Every pointer must outlive the object. `observer` may be null.
  // `after_layer` is called after each convolution; an error ends the run.
  CpuForward(CpuLayers& layers, ActivationObserver* observer,
             absl::FunctionRef<absl::Status()> after_layer)
      : layers_(layers), observer_(observer), after_layer_(after_layer) {}

  // [n, 1, h, w, z] to [n, 1 or TemporalFactor, H, W, out_channels], not
  // clamped.
  absl::StatusOr<CpuActivation> DecodeChunk(CpuActivation x);

  // [n, 1 or 4, H, W, in_channels] to [n, frames, h, w, 2 * z].
  absl::StatusOr<CpuActivation> EncodeChunk(CpuActivation x);

  // quant_conv or post_quant_conv on all frames it is given.
  absl::StatusOr<CpuActivation> Pointwise(const ConvLayer& layer,
                                          CpuActivation x);

  // Tells the observer, if it wants to know, with PyTorch's shape: batch and
  // frames in one axis when `per_frame`.
  absl::Status Observe(int module, const CpuActivation& x,
                       bool per_frame = false);

  // Returns a buffer of this shape.
  absl::StatusOr<CpuActivation> Allocate(int64_t n, int64_t t, int64_t h,
                                         int64_t w, int64_t c);

  int64_t flops() const { return flops_; }

 private:
  // The last frames that a causal layer saw: [n, kept, h, w, c].
  struct Cache {
    int64_t kept = 0;
    CpuBuffer frames;
  };
  // Writes the new frames of a causal layer's input; frame 0 of batch item i
  // goes to `to + i * stride`.
  using FillFrames = absl::FunctionRef<absl::Status(float* to, int64_t stride)>;

  absl::StatusOr<CpuActivation> Causal(const ConvLayer& layer, int64_t n,
                                       int64_t t, int64_t h, int64_t w,
                                       FillFrames fill, CpuActivation* sum);
  void FillFrom(const ConvLayer& layer, const CpuActivation& x, float* to,
                int64_t stride) const;
  absl::StatusOr<CpuActivation> CausalOn(const ConvLayer& layer,
                                         const CpuActivation& x);
  absl::Status RunConv(const ConvLayer& layer, const ConvShape& shape,
                       const float* input, float* output);
  absl::StatusOr<CpuActivation> NormSiluConv(const NormLayer& norm,
                                             int nonlinearity, int dropout,
                                             const ConvLayer& conv,
                                             const CpuActivation& x,
                                             CpuActivation* sum);
  absl::StatusOr<CpuActivation> Resnet(const ResnetBlock& block,
                                       CpuActivation x);
  absl::StatusOr<CpuActivation> Attention(const AttentionBlock& block,
                                          CpuActivation x);
  absl::Status Attend(const CpuActivation& qkv, CpuActivation& out);
  absl::StatusOr<CpuActivation> Mid(const MidBlock& block, CpuActivation x);
  absl::StatusOr<CpuActivation> Upsample(const ResampleBlock& block,
                                         CpuActivation x);
  absl::StatusOr<CpuActivation> Downsample(const ResampleBlock& block,
                                           CpuActivation x);
  absl::StatusOr<CpuActivation> TimeDownsample(const ConvLayer& layer,
                                               CpuActivation x);
  absl::StatusOr<CpuActivation> Head(const NormLayer& norm, int nonlinearity,
                                     const ConvLayer& conv,
                                     const CpuActivation& x);

  bool Wants(int module) const;

  CpuLayers& layers_;
  ActivationObserver* const observer_;
  absl::FunctionRef<absl::Status()> after_layer_;
  std::map<int, Cache> caches_;  // by module
  int64_t flops_ = 0;
};

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_FORWARD_H_
