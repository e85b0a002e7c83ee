#include "lib/wan_vae/cuda/plan_builder.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"

namespace firstframe::cuda {
namespace {

int PitchOf(int channels) { return CeilDivide(channels, 8) * 8; }

}  // namespace

PlanTensor PlanBuilder::Take(int height, int width, int channels, int batch,
                             int frames, bool force_float) {
  const bool is_float = force_float || plan_.options.mode != MathMode::kBf16;
  PlanTensor x = {.batch = batch, .frames = frames};
  for (size_t i = 0; i < plan_.pools.size(); ++i) {
    const FramePool& pool = plan_.pools[i];
    if (pool.height == height && pool.width == width &&
        pool.channels == channels && pool.is_float == is_float) {
      x.pool = static_cast<int>(i);
    }
  }
  if (x.pool < 0) {
    x.pool = static_cast<int>(plan_.pools.size());
    plan_.pools.push_back({.height = height,
                           .width = width,
                           .channels = channels,
                           .pitch = PitchOf(channels),
                           .slot_elements = kSlotBytes / (is_float ? 4 : 2),
                           .is_float = is_float});
  }
  const int slots = CeilDivide(plan_.pools[x.pool].FrameBytes(), kSlotBytes);
  for (int i = 0; i < batch * frames; ++i) {
    x.slots.push_back(allocator_.Take(slots));
  }
  return x;
}

void PlanBuilder::Release(PlanTensor& x) {
  for (const int slot : x.slots) allocator_.Release(slot);
  x.slots.clear();
}

PlanTensor PlanBuilder::Slice(const PlanTensor& x, int first, int count) {
  PlanTensor part = {.pool = x.pool, .batch = x.batch, .frames = count};
  for (int b = 0; b < x.batch; ++b) {
    for (int t = 0; t < count; ++t) part.slots.push_back(x.Slot(b, first + t));
  }
  return part;
}

PlanOp& PlanBuilder::AddOp(PlanOpKind kind, int module) {
  plan_.ops.push_back({.kind = kind, .module = module});
  return plan_.ops.back();
}

PlanTensor PlanBuilder::Load(int height, int width, int channels, int batch,
                             int first, int count) {
  PlanTensor x = Take(height, width, channels, batch, count);
  for (int b = 0; b < batch; ++b) {
    for (int t = 0; t < count; t += kMaxFrames) {
      PlanOp& op = AddOp(PlanOpKind::kFromPlanes, 0);
      op.out_pool = x.pool;
      op.batch_item = b;
      op.first_frame = first + t;
      for (int i = t; i < std::min(count, t + kMaxFrames); ++i) {
        op.slots.push_back(x.Slot(b, i));
      }
    }
  }
  return x;
}

void PlanBuilder::AddConvOps(PlanOp op,
                             const std::vector<PlannedFrame>& frames) {
  const FramePool& in = plan_.pools[op.in_pool];
  int height = in.height;
  int width = in.width;
  if (op.variant.resample == Resample::kUp) height *= 2, width *= 2;
  if (op.variant.resample == Resample::kDown) height /= 2, width /= 2;
  const double flops_of_tap = 2.0 * height * width * op.in_channels *
                              op.out_channels * op.variant.window *
                              op.variant.window;
  for (size_t i = 0; i < frames.size(); i += kMaxFrames) {
    op.frames.assign(frames.begin() + i,
                     frames.begin() + std::min(frames.size(), i + kMaxFrames));
    op.flops = 0;
    for (const PlannedFrame& frame : op.frames) {
      for (const int slot : frame.in) op.flops += slot >= 0 ? flops_of_tap : 0;
    }
    plan_.conv_flops += op.flops;
    plan_.ops.push_back(op);
  }
}

bool PlanBuilder::Fuses(const ConvLayer& layer) const {
  return !observed() && CanFuseNorm(VariantOf(tree_, layer, plan_.options),
                                    static_cast<int>(layer.out_channels));
}

PlanActivation PlanBuilder::Conv(const ConvLayer& layer, PlanTensor& x,
                                 const ConvExtras& extras) {
  const FramePool in = FramesOf(x);
  const int taps = static_cast<int>(layer.kernel[0]);
  const int out_channels = static_cast<int>(layer.out_channels) / extras.folds;
  int height = in.height;
  int width = in.width;
  if (extras.resample == Resample::kUp) height *= 2, width *= 2;
  if (extras.resample == Resample::kDown) height /= 2, width /= 2;

  // Earlier frames: the cache, before which everything is zero.
  Cache* cache = taps > 1 ? &caches_[layer.module] : nullptr;
  if (cache != nullptr) cache->slots.resize(x.batch);
  const int kept = cache != nullptr ? cache->frames : 0;
  // With a stride, outputs start where the kept frame and the new ones do.
  const int lead = extras.time_stride > 1 ? -kept : -(taps - 1);
  const int out_frames = extras.time_stride > 1
                             ? (kept + x.frames - taps) / extras.time_stride + 1
                             : x.frames;
  PlanActivation y;
  const bool has_raw = extras.want_raw && !extras.to_planes;
  if (extras.residual != nullptr) {
    y.raw = std::move(*extras.residual);
    extras.residual->slots.clear();
  } else if (has_raw) {
    y.raw =
        Take(height, width, out_channels, x.batch, out_frames * extras.folds);
  }
  const bool fuses = extras.next_norm != nullptr && Fuses(layer);
  FF_CHECK(fuses || extras.to_planes || !y.raw.empty());
  if (fuses) {
    y.normed = Take(height, width, out_channels, x.batch, out_frames);
  }
  PlanOp op = {.kind = PlanOpKind::kConv,
               .module = layer.module,
               .layer = &layer,
               .norm = fuses ? extras.next_norm : nullptr,
               .variant = VariantOf(tree_, layer, plan_.options),
               .in_channels = static_cast<int>(layer.in_channels),
               .out_channels = static_cast<int>(layer.out_channels),
               .split_channel = extras.folds > 1 ? out_channels : 0,
               .in_pool = x.pool,
               .out_pool = has_raw ? y.raw.pool : -1,
               .norm_pool = fuses ? y.normed.pool : -1,
               .residual_pool = extras.residual != nullptr ? y.raw.pool : -1};
  op.to_chunk_planes = extras.to_planes;
  op.planes = planes_;
  op.num_frames = extras.to_planes ? out_frames : 0;
  std::vector<PlannedFrame> frames;
  for (int b = 0; b < x.batch; ++b) {
    for (int t = 0; t < out_frames; ++t) {
      PlannedFrame frame;
      for (int k = 0; k < taps; ++k) {
        const int at = lead + t * extras.time_stride + k;
        if (at >= 0) {
          frame.in[k] = x.Slot(b, at);
        } else if (kept + at >= 0) {
          frame.in[k] = cache->slots[b][kept + at];
        }
      }
      if (extras.to_planes) {
        // Channels of one batch item lie between its frames and the next's.
        frame.out[0] = b * out_frames * out_channels + t;
      } else if (has_raw) {
        for (int fold = 0; fold < extras.folds; ++fold) {
          frame.out[fold] = y.raw.Slot(b, t * extras.folds + fold);
        }
      }
      if (fuses) frame.norm = y.normed.Slot(b, t);
      if (extras.residual != nullptr) frame.residual = y.raw.Slot(b, t);
      frames.push_back(frame);
    }
  }
  AddConvOps(std::move(op), frames);
  if (!extras.want_raw && extras.residual != nullptr) Release(y.raw);
  if (cache == nullptr) return y;

  // Keep the last frames of [cache, x], give the others back.
  const int keep =
      extras.time_stride > 1 ? 1 : std::min(taps - 1, kept + x.frames);
  for (int b = 0; b < x.batch; ++b) {
    std::vector<int>& slots = cache->slots[b];
    for (int t = 0; t < x.frames; ++t) slots.push_back(x.Slot(b, t));
    while (static_cast<int>(slots.size()) > keep) {
      allocator_.Release(slots.front());
      slots.erase(slots.begin());
    }
  }
  cache->frames = keep;
  x.slots.clear();
  return y;
}

void PlanBuilder::KeepLast(const ConvLayer& layer, const PlanTensor& x) {
  // The frame itself goes on to the next layer, which may overwrite or release
  // it: keep a copy, made by adding nothing (SiLU and norm off).
  PlanTensor last = Slice(x, x.frames - 1, 1);
  const FramePool pool = FramesOf(x);
  PlanTensor copy = Take(pool.height, pool.width, pool.channels, x.batch, 1);
  PlanOp& op = AddOp(PlanOpKind::kNorm, layer.module);
  op.in_pool = op.out_pool = x.pool;
  Cache& cache = caches_[layer.module];
  cache.frames = 1;
  for (int b = 0; b < x.batch; ++b) {
    PlannedFrame frame;
    frame.in[0] = last.slots[b];
    frame.out[0] = copy.slots[b];
    op.frames.push_back(frame);
    cache.slots.push_back({copy.slots[b]});
  }
}

PlanTensor PlanBuilder::Norm(int module, const NormLayer* norm, PlanTensor& x,
                             bool silu, bool in_place) {
  const FramePool pool = FramesOf(x);
  PlanTensor y = in_place ? std::move(x)
                          : Take(pool.height, pool.width, pool.channels,
                                 x.batch, x.frames, pool.is_float);
  const PlanTensor& from = in_place ? y : x;
  for (size_t i = 0; i < y.slots.size(); i += kMaxFrames) {
    PlanOp& op = AddOp(PlanOpKind::kNorm, module);
    op.norm = norm;
    op.apply_silu = silu;
    op.in_pool = op.out_pool = y.pool;
    for (size_t j = i; j < std::min(y.slots.size(), i + kMaxFrames); ++j) {
      PlannedFrame frame;
      frame.in[0] = from.slots[j];
      frame.out[0] = y.slots[j];
      op.frames.push_back(frame);
    }
  }
  if (in_place) x.slots.clear();
  return y;
}

void PlanBuilder::Add(PlanTensor& to, const PlanTensor& from) {
  FF_CHECK(to.pool == from.pool && to.slots.size() == from.slots.size());
  for (size_t i = 0; i < to.slots.size(); i += kMaxFrames) {
    PlanOp& op = AddOp(PlanOpKind::kAdd, 0);
    op.out_pool = op.residual_pool = to.pool;
    for (size_t j = i; j < std::min(to.slots.size(), i + kMaxFrames); ++j) {
      PlannedFrame frame;
      frame.out[0] = to.slots[j];
      frame.residual = from.slots[j];
      op.frames.push_back(frame);
    }
  }
}

PlanTensor PlanBuilder::Attend(const AttentionBlock& block,
                               const PlanTensor& qkv) {
  const FramePool pool = FramesOf(qkv);
  const int channels = pool.channels / 3;
  const int positions = pool.height * pool.width;
  const PlanOptions& options = plan_.options;
  PlanTensor out =
      Take(pool.height, pool.width, channels, qkv.batch, qkv.frames);
  PlanTensor scores = Take(pool.height, pool.width, positions, 1, 1,
                           /*force_float=*/true);
  const bool in_place = options.mode != MathMode::kBf16;
  PlanTensor weights =
      in_place ? scores : Take(pool.height, pool.width, positions, 1, 1);
  const auto product = [&](int in_pool, int in, int k, int out_pool, int to,
                           int n, int first_channel, bool is_transposed,
                           int source) {
    PlanOp op = {.kind = PlanOpKind::kPack,
                 .module = block.module,
                 .variant = PickConvVariant(options.kind, options.mode, n, 1,
                                            Resample::kNone, false),
                 .in_pool = qkv.pool,
                 .first_channel = first_channel,
                 .is_transposed = is_transposed,
                 .pack_n = n,
                 .pack_k = k};
    op.slots = {source};
    plan_.dynamic_weights_bytes = std::max(
        plan_.dynamic_weights_bytes, PackedWeightBytes(op.variant, n, k, 1));
    plan_.ops.push_back(op);
    op.kind = PlanOpKind::kConv;
    op.in_channels = k;
    op.out_channels = n;
    op.in_pool = in_pool;
    op.out_pool = out_pool;
    PlannedFrame frame;
    frame.in[0] = in;
    frame.out[0] = to;
    AddConvOps(op, {frame});
  };
  for (size_t i = 0; i < qkv.slots.size(); ++i) {
    product(qkv.pool, qkv.slots[i], channels, scores.pool, scores.slots[0],
            positions, channels, false, qkv.slots[i]);
    PlanOp& softmax = AddOp(PlanOpKind::kSoftmax, block.module);
    softmax.in_pool = scores.pool;
    softmax.out_pool = weights.pool;
    softmax.scale = 1.0f / std::sqrt(static_cast<float>(channels));
    softmax.slots = {scores.slots[0], weights.slots[0]};
    product(weights.pool, weights.slots[0], positions, out.pool, out.slots[i],
            channels, 2 * channels, true, qkv.slots[i]);
  }
  Release(scores);
  if (!in_place) Release(weights);
  return out;
}

void PlanBuilder::ConvToOutput(const ConvLayer& layer, PlanTensor& x,
                               int first_frame, int parent_module) {
  const FramePool in = FramesOf(x);
  const int frames = x.frames;
  const int batch = x.batch;
  const int channels = static_cast<int>(layer.out_channels);
  const int64_t plane = int64_t{in.height} * in.width;
  planes_ = (planes_ + 1) % kChunkPlanes;
  Conv(layer, x, {.to_planes = true});
  plan_.chunk_planes_bytes =
      std::max(plan_.chunk_planes_bytes, 4 * plane * channels * frames * batch);
  if (observed()) {
    for (const int module : {layer.module, parent_module}) {
      PlanOp& op = AddOp(PlanOpKind::kObserve, module);
      op.to_chunk_planes = true;
      op.planes = planes_;
      op.shape = {batch, channels, frames, in.height, in.width};
    }
  }
  PlanOp& op = AddOp(PlanOpKind::kPlanesToOutput, layer.module);
  op.planes = planes_;
  op.first_frame = first_frame;
  op.num_frames = frames;
}

void PlanBuilder::ToOutput(const PlanTensor& x, int first_frame) {
  for (int b = 0; b < x.batch; ++b) {
    for (int t = 0; t < x.frames; t += kMaxFrames) {
      PlanOp& op = AddOp(PlanOpKind::kToOutput, 0);
      op.in_pool = x.pool;
      op.batch_item = b;
      op.first_frame = first_frame + t;
      for (int i = t; i < std::min(x.frames, t + kMaxFrames); ++i) {
        op.slots.push_back(x.Slot(b, i));
      }
    }
  }
}

void PlanBuilder::Observe(int module, const PlanTensor& x, bool per_frame,
                          int folds, int enlarge) {
  if (!observed()) return;
  const FramePool& pool = FramesOf(x);
  PlanOp& op = AddOp(PlanOpKind::kObserve, module);
  op.in_pool = x.pool;
  op.per_frame = per_frame;
  op.folds = folds;
  op.enlarge = enlarge;
  op.slots = x.slots;
  op.batch_item = x.batch;
  const int frames = x.frames / folds;
  const int channels = pool.channels * folds;
  const int height = enlarge == 0 ? pool.height + 1 : pool.height * enlarge;
  const int width = enlarge == 0 ? pool.width + 1 : pool.width * enlarge;
  if (per_frame) {
    op.shape = {x.batch * frames, channels, height, width};
  } else {
    op.shape = {x.batch, channels, frames, height, width};
  }
  plan_.observe_bytes =
      std::max(plan_.observe_bytes, int64_t{pool.is_float ? 4 : 2} * x.batch *
                                        frames * channels * height * width);
}

}  // namespace firstframe::cuda
