// Launches a plan.

#ifndef LIB_WAN_VAE_CUDA_PLAN_RUNNER_H_
#define LIB_WAN_VAE_CUDA_PLAN_RUNNER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "lib/cuda/stream.h"
#include "lib/wan_vae/cuda/device_parameters.h"
#include "lib/wan_vae/cuda/output_drain.h"
#include "lib/wan_vae/cuda/plan.h"
#include "lib/wan_vae/observer.h"

namespace firstframe::cuda {

// All in device memory, all outlived by what it points to.
struct PlanBuffers {
  std::byte* arena = nullptr;    // Plan::arena_bytes
  const float* input = nullptr;  // [batch, channels, frames, height, width]
  float* output = nullptr;       // Plan's batch and out_* sizes, or null:
  OutputDrain* drain = nullptr;  // takes it to the host piece by piece
  int64_t input_channels = 0;
  int64_t input_frames = 0;
};

class PlanRunner {
 public:
  PlanRunner(const Plan& plan, const ModuleTree& tree,
             const DeviceParameters& parameters, int multiprocessors,
             const PlanBuffers& buffers, const Stream& stream)
      : plan_(plan),
        tree_(tree),
        parameters_(parameters),
        multiprocessors_(multiprocessors),
        buffers_(buffers),
        stream_(stream) {}

  // Enqueues one operation. `observer` may be null.
  absl::Status Launch(const PlanOp& op, ActivationObserver* observer);

 private:
  FramePool Pool(int index) const;
  std::byte* Slot(int slot) const { return buffers_.arena + slot * kSlotBytes; }

  absl::Status Conv(const PlanOp& op);
  absl::Status Norm(const PlanOp& op);
  absl::Status Add(const PlanOp& op);
  absl::Status Pack(const PlanOp& op);
  absl::Status Softmax(const PlanOp& op);
  absl::Status FromPlanes(const PlanOp& op);
  absl::Status ToOutput(const PlanOp& op);
  absl::Status PlanesToOutput(const PlanOp& op);
  float* Planes(const PlanOp& op) const {
    return reinterpret_cast<float*>(buffers_.arena + plan_.chunk_planes_offset +
                                    op.planes * plan_.chunk_planes_bytes);
  }
  absl::Status Observe(const PlanOp& op, ActivationObserver& observer);

  const Plan& plan_;
  const ModuleTree& tree_;
  const DeviceParameters& parameters_;
  const int multiprocessors_;
  const PlanBuffers buffers_;
  const Stream& stream_;
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_PLAN_RUNNER_H_
