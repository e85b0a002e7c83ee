#include "lib/wan_vae/cuda/plan_runner.h"

#include <algorithm>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/wan_vae/cuda/kernels.h"

namespace firstframe::cuda {

FramePool PlanRunner::Pool(int index) const {
  FramePool pool = plan_.pools[index];
  pool.data = buffers_.arena;
  return pool;
}

absl::Status PlanRunner::Launch(const PlanOp& op,
                                ActivationObserver* observer) {
  switch (op.kind) {
    case PlanOpKind::kFromPlanes:
      return FromPlanes(op);
    case PlanOpKind::kConv:
      return Annotate(Conv(op), tree_.modules[op.module].name);
    case PlanOpKind::kNorm:
      return Annotate(Norm(op), tree_.modules[op.module].name);
    case PlanOpKind::kAdd:
      return Add(op);
    case PlanOpKind::kPack:
      return Pack(op);
    case PlanOpKind::kSoftmax:
      return Softmax(op);
    case PlanOpKind::kToOutput:
      return ToOutput(op);
    case PlanOpKind::kPlanesToOutput:
      return PlanesToOutput(op);
    case PlanOpKind::kObserve:
      if (observer == nullptr) return absl::OkStatus();
      return Observe(op, *observer);
  }
  return absl::InternalError("unknown operation");
}

absl::Status PlanRunner::Conv(const PlanOp& op) {
  const FramePool in = Pool(op.in_pool);
  ConvArguments a;
  a.weights = buffers_.arena + plan_.dynamic_weights_offset;
  if (op.layer != nullptr) {
    const DeviceParameters::Layer& layer = parameters_.LayerOf(*op.layer);
    a.weights = layer.weights;
    a.bias = layer.bias;
  }
  a.height = in.height;
  a.width = in.width;
  if (op.variant.resample == Resample::kUp) a.height *= 2, a.width *= 2;
  if (op.variant.resample == Resample::kDown) a.height /= 2, a.width /= 2;
  a.out_channels = op.out_channels;
  if (op.split_channel > 0) a.split_channel = op.split_channel;
  a.in_chunks = CeilDivide(op.in_channels, ChunkChannels(op.variant));
  a.time_taps = op.layer ? static_cast<int>(op.layer->kernel[0]) : 1;
  a.frames = static_cast<int>(op.frames.size());
  if (op.to_chunk_planes) {
    if (buffers_.drain != nullptr) {
      FF_RETURN_IF_ERROR(buffers_.drain->Await(op.planes));
    }
    a.out = Planes(op);
    a.plane_frames = op.num_frames;
  } else if (op.out_pool >= 0) {
    const FramePool out = Pool(op.out_pool);
    a.out = out.data;
    a.out_pitch = out.pitch;
    a.out_slot_elements = out.slot_elements;
    a.out_is_float = out.is_float;
  }
  if (op.norm_pool >= 0) {
    const FramePool norm = Pool(op.norm_pool);
    a.norm_out = norm.data;
    a.norm_pitch = norm.pitch;
    a.norm_slot_elements = norm.slot_elements;
    a.gamma = parameters_.GammaOf(*op.norm);
  }
  if (op.residual_pool >= 0) {
    const FramePool residual = Pool(op.residual_pool);
    a.residual = residual.data;
    a.residual_pitch = residual.pitch;
    a.residual_slot_elements = residual.slot_elements;
  }
  for (int i = 0; i < a.frames; ++i) {
    const PlannedFrame& frame = op.frames[i];
    std::copy(frame.in.begin(), frame.in.end(), a.in_slot[i]);
    std::copy(frame.out.begin(), frame.out.end(), a.out_slot[i]);
    a.norm_slot[i] = frame.norm;
    a.residual_slot[i] = frame.residual;
  }
  return LaunchConv(op.variant, in, a, multiprocessors_, stream_.handle());
}

absl::Status PlanRunner::Norm(const PlanOp& op) {
  NormArguments a;
  a.apply_norm = op.norm != nullptr;
  if (op.norm != nullptr) a.gamma = parameters_.GammaOf(*op.norm);
  a.apply_silu = op.apply_silu;
  a.frames = static_cast<int>(op.frames.size());
  for (int i = 0; i < a.frames; ++i) {
    a.from_slot[i] = op.frames[i].in[0];
    a.to_slot[i] = op.frames[i].out[0];
  }
  return LaunchNorm(Pool(op.in_pool), a, stream_.handle());
}

absl::Status PlanRunner::Add(const PlanOp& op) {
  NormArguments a;
  a.frames = static_cast<int>(op.frames.size());
  for (int i = 0; i < a.frames; ++i) {
    a.from_slot[i] = op.frames[i].residual;
    a.to_slot[i] = op.frames[i].out[0];
  }
  return LaunchAdd(Pool(op.out_pool), a, stream_.handle());
}

absl::Status PlanRunner::Pack(const PlanOp& op) {
  const FramePool pool = Pool(op.in_pool);
  const int element = pool.is_float ? 4 : 2;
  const PackSource source = {
      .from = Slot(op.slots[0]) + int64_t{op.first_channel} * element,
      .is_float = pool.is_float,
      .n_stride = op.is_transposed ? 1 : pool.pitch,
      .k_stride = op.is_transposed ? pool.pitch : 1,
      .n = op.pack_n,
      .k = op.pack_k};
  return LaunchPack(op.variant, source,
                    buffers_.arena + plan_.dynamic_weights_offset,
                    stream_.handle());
}

absl::Status PlanRunner::Softmax(const PlanOp& op) {
  const FramePool pool = Pool(op.in_pool);
  return LaunchSoftmax(plan_.options.mode,
                       reinterpret_cast<const float*>(Slot(op.slots[0])),
                       Slot(op.slots[1]), int64_t{pool.height} * pool.width,
                       pool.channels, pool.pitch, op.scale, stream_.handle());
}

absl::Status PlanRunner::FromPlanes(const PlanOp& op) {
  const FramePool pool = Pool(op.out_pool);
  PlaneArguments a;
  a.planes = const_cast<float*>(buffers_.input) +
             op.batch_item * buffers_.input_channels * buffers_.input_frames *
                 pool.height * pool.width;
  a.plane_frames = buffers_.input_frames;
  a.first_frame = op.first_frame;
  a.channels = pool.channels;
  a.frames = static_cast<int>(op.slots.size());
  std::copy(op.slots.begin(), op.slots.end(), a.slot);
  return LaunchFromPlanes(pool, a, stream_.handle());
}

absl::Status PlanRunner::ToOutput(const PlanOp& op) {
  const FramePool pool = Pool(op.in_pool);
  PlaneArguments a;
  a.planes = buffers_.output + int64_t{op.batch_item} * plan_.out_channels *
                                   plan_.out_frames * pool.height * pool.width;
  a.plane_frames = plan_.out_frames;
  a.first_frame = op.first_frame;
  a.channels = pool.channels;
  a.frames = static_cast<int>(op.slots.size());
  std::copy(op.slots.begin(), op.slots.end(), a.slot);
  return LaunchToPlanes(pool, a, stream_.handle());
}

absl::Status PlanRunner::PlanesToOutput(const PlanOp& op) {
  FF_CHECK(buffers_.drain != nullptr);  // decoders have one
  const int64_t plane = int64_t{plan_.out_height} * plan_.out_width;
  const int64_t run = op.num_frames * plane;
  std::vector<OutputDrain::Piece> pieces;
  for (int64_t i = 0; i < int64_t{plan_.batch} * plan_.out_channels; ++i) {
    pieces.push_back({Planes(op) + i * run,
                      (i * plan_.out_frames + op.first_frame) * plane, run});
  }
  return buffers_.drain->Push(op.planes, std::move(pieces), stream_);
}

absl::Status PlanRunner::Observe(const PlanOp& op,
                                 ActivationObserver& observer) {
  const Module& module = tree_.modules[op.module];
  if (!observer.Wants(module)) return absl::OkStatus();
  ObservedTensor tensor = {
      .shape = op.shape, .on_device = true, .stream = stream_.handle()};
  if (op.to_chunk_planes) {
    tensor.data = Planes(op);
    return observer.OnOutput(module, tensor);
  }
  const FramePool pool = Pool(op.in_pool);
  ObserveArguments a;
  a.planes = buffers_.arena + plan_.observe_offset;
  a.height = static_cast<int>(op.shape[op.shape.size() - 2]);
  a.width = static_cast<int>(op.shape.back());
  a.enlarge = std::max(op.enlarge, 1);
  a.folds = op.folds;
  const int all = static_cast<int>(op.slots.size()) / op.folds;
  a.frames = op.per_frame ? 1 : all / op.batch_item;
  for (int first = 0; first < all; first += kMaxFrames) {
    a.first_frame = first;
    a.count = std::min(kMaxFrames, all - first);
    std::copy_n(op.slots.begin() + first * op.folds, a.count * op.folds,
                a.slot);
    FF_RETURN_IF_ERROR(LaunchObserve(pool, a, stream_.handle()));
  }
  tensor.dtype = pool.is_float ? DType::kF32 : DType::kBF16;
  tensor.data = a.planes;
  return observer.OnOutput(module, tensor);
}

}  // namespace firstframe::cuda
