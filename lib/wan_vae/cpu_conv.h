// One convolution layer on oneDNN: channels-last activations, blocked weights,
// primitives made once per shape. Very narrow layers run in direct_conv.h.

#ifndef LIB_WAN_VAE_CPU_CONV_H_
#define LIB_WAN_VAE_CPU_CONV_H_

#include <cstdint>
#include <map>
#include <memory>
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
  int64_t scratch_bytes() const {
    return static_cast<int64_t>(scratch_.size());
  }

 private:
  DnnlContext() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<char> scratch_;
};

// Runs dnnl code, whose errors are exceptions, at the edge of ours.
absl::Status CatchDnnl(const char* what, absl::FunctionRef<void()> body);

// Thread-compatible. `layer`, and the context, must outlive the object.
class CpuConv {
 public:
  CpuConv(const ConvLayer& layer, DnnlContext& context)
      : layer_(layer), context_(context) {}

  // Takes the weights in PyTorch's layout and stores them as the primitive for
  // `likely` reads them. `weight` is no longer needed after that.
  absl::Status SetWeights(const float* weight, const float* bias,
                          const ConvShape& likely);

  absl::Status Run(const ConvShape& shape, const float* input, float* output);

  int64_t parameter_bytes() const;

 private:
  struct Prepared {
    dnnl::convolution_forward primitive;
    dnnl::memory input, weights, bias, output;
    dnnl::memory::desc scratch;
  };

  dnnl::convolution_forward::primitive_desc Describe(
      const ConvShape& shape) const;
  // Returns the weights in layout `desc`, reordering them at its first use.
  // Which layout is fastest depends on the shape, so there can be two or three.
  dnnl::memory WeightsIn(const dnnl::memory::desc& desc);
  Prepared& Prepare(const ConvShape& shape);

  const ConvLayer& layer_;
  DnnlContext& context_;
  bool is_narrow() const;

  std::vector<float> plain_weights_, plain_bias_;  // of a narrow layer
  std::vector<dnnl::memory> weights_;
  dnnl::memory bias_;
  std::map<ConvShape, Prepared> prepared_;
};

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_CONV_H_
