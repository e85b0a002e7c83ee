// Places frames and lists launches; plan.cc walks the model with it.

#ifndef LIB_WAN_VAE_CUDA_PLAN_BUILDER_H_
#define LIB_WAN_VAE_CUDA_PLAN_BUILDER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "lib/wan_vae/cuda/plan.h"
#include "lib/wan_vae/cuda/slot_allocator.h"

namespace firstframe::cuda {

// Frames [batch][frames] of one size. Owns its slots in the sense of the
// planner: someone must release them or keep them.
struct PlanTensor {
  int pool = -1;
  int batch = 0;
  int frames = 0;
  std::vector<int> slots = {};

  bool empty() const { return slots.empty(); }
  int Slot(int b, int t) const { return slots[b * frames + t]; }
};

// An activation, and where a launch made it along the way also
// silu(norm(activation)) for the norm that follows.
struct PlanActivation {
  PlanTensor raw;
  PlanTensor normed;
};

class PlanBuilder {
 public:
  PlanBuilder(const ModuleTree& tree, const PlanOptions& options)
      : tree_(tree) {
    plan_.options = options;
  }

  bool observed() const { return plan_.options.observed; }
  Plan& plan() { return plan_; }
  const FramePool& FramesOf(const PlanTensor& x) const {
    return plan_.pools[x.pool];
  }

  // Returns slots of frames of this size. Float32 in kBf16 only when
  // `force_float`.
  PlanTensor Take(int height, int width, int channels, int batch, int frames,
                  bool force_float = false);
  void Release(PlanTensor& x);
  // Removes and returns frames [first, first + count) of every batch item.
  static PlanTensor Slice(const PlanTensor& x, int first, int count);

  // Loads frames [first, first + count) of the run's input.
  PlanTensor Load(int height, int width, int channels, int batch, int first,
                  int count);

  struct ConvExtras {
    PlanTensor* residual = nullptr;  // used up: the sum takes its place
    const NormLayer* next_norm = nullptr;
    bool want_raw = true;    // false: only with a norm that can be fused
    bool to_planes = false;  // into the chunk's planes instead of frames
    Resample resample = Resample::kNone;
    int folds = 1;  // channels become this many frames
    int time_stride = 1;
  };
  // Runs `layer` on x. A layer with a kernel in time takes x over and keeps
  // what the next chunk needs; otherwise x stays the caller's.
  PlanActivation Conv(const ConvLayer& layer, PlanTensor& x,
                      const ConvExtras& extras);
  // Keeps the last frame of x for a layer that starts with the next chunk.
  void KeepLast(const ConvLayer& layer, const PlanTensor& x);
  bool HasCache(const ConvLayer& layer) const {
    return caches_.count(layer.module) > 0;
  }
  // Whether Conv would fuse `norm`.
  bool Fuses(const ConvLayer& layer) const;

  // In place when `in_place`, else into new slots. A null norm is SiLU alone.
  PlanTensor Norm(int module, const NormLayer* norm, PlanTensor& x, bool silu,
                  bool in_place);
  void Add(PlanTensor& to, const PlanTensor& from);

  // Matrix products of attention, frame by frame.
  PlanTensor Attend(const AttentionBlock& block, const PlanTensor& qkv);

  // Runs the last layer into float32 planes of the chunk, then to the output.
  void ConvToOutput(const ConvLayer& layer, PlanTensor& x, int first_frame,
                    int parent_module);
  void ToOutput(const PlanTensor& x, int first_frame);

  void Observe(int module, const PlanTensor& x, bool per_frame = false,
               int folds = 1, int enlarge = 1);

  // Places everything in the arena.
  Plan Finish();

 private:
  struct Cache {
    int frames = 0;  // kept of each batch item
    std::vector<std::vector<int>> slots;
  };

  PlanOp& AddOp(PlanOpKind kind, int module);
  void AddConvOps(PlanOp op, const std::vector<PlannedFrame>& frames);
  void PlaceFrames(const std::vector<int>& first_slot);

  const ModuleTree& tree_;
  Plan plan_;
  SlotAllocator allocator_;      // PlanTensor::slots are its runs until Finish
  std::map<int, Cache> caches_;  // by module
  int planes_ = 0;               // the chunk's planes written last
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_PLAN_BUILDER_H_
