// One convolution layer on oneDNN: channels-last activations, blocked weights,
// primitives made once per shape. Very narrow layers run in direct_conv.h.

#ifndef LIB_WAN_VAE_CPU_CONV_H_
#define LIB_WAN_VAE_CPU_CONV_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dnnl.hpp"
#include "lib/wan_vae/direct_conv.h"
#include "lib/wan_vae/module_tree.h"

namespace firstframe {

// oneDNN's engine and stream, and the scratch memory that all layers share.
// Thread-compatible.
class DnnlContext {
 public:
  // Unavailable, with oneDNN's reason, when it cannot start.
  static absl::StatusOr<std::unique_ptr<DnnlContext>> Create();

  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }

  // Returns scratch memory for `desc`, valid until the next call.
  dnnl::memory Scratch(const dnnl::memory::desc& desc);
  // Returns memory for `size` partial sums, likewise.
  float* Partial(int64_t size);
  int64_t scratch_bytes() const {
    return static_cast<int64_t>(scratch_.size() +
                                partial_.size() * sizeof(float));
  }

 private:
  DnnlContext() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<char> scratch_;
  std::vector<float> partial_;
};

// Runs dnnl code, whose errors are exceptions, at the edge of ours.
absl::Status CatchDnnl(const char* what, absl::FunctionRef<void()> body);

// Returns how many groups the input channels of `layer` run in, one after the
// other, each adding to the output. oneDNN may form a wide layer's sum of
// 10,000 products in one chain of float32 additions (which it does depends on
// the processor's caches); the published model's decode is then 4.2e-6 from
// float64. In groups of at most 64 channels of 3 x 3 x 3 taps it is 2.8e-6
// there and 2.5e-6 where the chains were short anyway; halving the groups again
// gains 0.3e-6 for twice the launches. Without AVX-512 it was 6.7e-6; groups of
// 8 channels, each summed apart, make it 2.6e-6 and cost no time.
int64_t NumInputGroups(const ConvLayer& layer);

// Thread-compatible. `layer`, and the context, must outlive the object.
class CpuConv {
 public:
  CpuConv(const ConvLayer& layer, DnnlContext& context);

  // Takes the weights in PyTorch's layout and stores them as the primitive for
  // `likely` reads them. `weight` is no longer needed after that.
  absl::Status SetWeights(const float* weight, const float* bias,
                          const ConvShape& likely);

  // `input` is [groups, batch, frames, height, width, in_channels / groups];
  // `output` [batch, frames, height, width, out_channels].
  absl::Status Run(const ConvShape& shape, const float* input, float* output);

  int64_t num_groups() const { return static_cast<int64_t>(groups_.size()); }
  int64_t parameter_bytes() const;

 private:
  // The weights of some input channels, in every layout asked for so far. Which
  // is fastest depends on the shape, so there can be two or three.
  using Group = std::vector<dnnl::memory>;

  struct Prepared {
    dnnl::convolution_forward primitive;
    dnnl::memory input, output;
    std::vector<dnnl::memory> weights;  // by group
    dnnl::memory::desc scratch;
  };

  bool is_narrow() const;
  // The first group adds the bias; the others add to its result.
  dnnl::convolution_forward::primitive_desc Describe(const ConvShape& shape,
                                                     bool is_first) const;
  // Returns the weights of `group` in layout `desc`, made at its first use.
  dnnl::memory WeightsIn(Group& group, const dnnl::memory::desc& desc);
  Prepared& Prepare(const ConvShape& shape, bool is_first);

  const ConvLayer& layer_;
  DnnlContext& context_;
  ConvLayer group_layer_;                          // one group on its own
  std::vector<float> plain_weights_, plain_bias_;  // of a narrow layer
  std::vector<Group> groups_;
  dnnl::memory bias_;
  std::map<std::pair<ConvShape, bool>, Prepared> prepared_;
};

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_CONV_H_
