// What a backend tells about the outputs of the modules it runs.
//
// The calls come in the order in which PyTorch's forward hooks fire: as each
// module completes, so children before their parent. A module runs once per
// chunk of frames; without tiling post_quant_conv runs once per decode.

#ifndef LIB_WAN_VAE_OBSERVER_H_
#define LIB_WAN_VAE_OBSERVER_H_

#include "absl/status/status.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/module_tree.h"

namespace firstframe {

// A module's output: dense, row-major, in the shape PyTorch would have
// ([batch, channels, frames, height, width], or [batch * frames, channels,
// height, width] inside attentions and resamplers). Valid during the call.
struct ObservedTensor {
  DType dtype = DType::kF32;
  Shape shape;
  const void* data = nullptr;
  bool on_device = false;  // data is device memory, ready in `stream`'s order
  void* stream = nullptr;  // a cudaStream_t when on_device
};

// Called from the thread that runs the model. Without an observer a run fuses
// operations and calls nothing; with one it computes each wanted output.
class ActivationObserver {
 public:
  virtual ~ActivationObserver() = default;

  // Whether OnOutput is to be called for `module`. Asked at every output, so it
  // should be a look-up; outputs nobody wants are not materialised.
  virtual bool Wants(const Module& /*module*/) { return true; }

  // An error ends the run, which returns it.
  virtual absl::Status OnOutput(const Module& module,
                                const ObservedTensor& output) = 0;
};

}  // namespace firstframe

#endif  // LIB_WAN_VAE_OBSERVER_H_
