// Where a plan's frames and buffers lie in the arena, once all of it is known.

#include <utility>

#include "lib/wan_vae/cuda/plan_builder.h"

namespace firstframe::cuda {
namespace {

constexpr int64_t kArenaAlignment = 1024;

int64_t AlignUp(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

// Operations were made with the numbers of runs: they get their slots.
void PlanBuilder::PlaceFrames(const std::vector<int>& first_slot) {
  const auto place = [&](int& run) {
    if (run >= 0) run = first_slot[run];
  };
  for (PlanOp& op : plan_.ops) {
    for (int& run : op.slots) place(run);
    for (PlannedFrame& frame : op.frames) {
      for (int& run : frame.in) place(run);
      if (!op.to_chunk_planes) {
        for (int& run : frame.out) place(run);
      }
      place(frame.norm);
      place(frame.residual);
    }
  }
}

Plan PlanBuilder::Finish() {
  const SlotAllocator::Placement placement = allocator_.Place();
  PlaceFrames(placement.first);
  plan_.frame_bytes = placement.slots * kSlotBytes;
  for (FramePool& pool : plan_.pools) pool.slots = placement.slots;
  int64_t offset = plan_.frame_bytes;
  const auto place = [&offset](int64_t bytes) {
    const int64_t at = offset;
    offset += AlignUp(bytes);
    return at;
  };
  plan_.dynamic_weights_offset = place(plan_.dynamic_weights_bytes);
  plan_.chunk_planes_offset = place(kChunkPlanes * plan_.chunk_planes_bytes);
  plan_.observe_offset = place(plan_.observe_bytes);
  plan_.arena_bytes = offset;
  return std::move(plan_);
}

}  // namespace firstframe::cuda
