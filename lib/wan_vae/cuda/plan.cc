#include "lib/wan_vae/cuda/plan.h"

#include <algorithm>

#include "lib/wan_vae/cuda/plan_builder.h"

namespace firstframe::cuda {
namespace {

// The encoder takes the first frame alone, then this many at a time.
constexpr int kEncoderChunk = 4;

// Frames are taken together until a step of the decoder's last level has this
// many pixels, enough to fill a large GPU some eight times.
constexpr int64_t kStepPixels = 300'000;

class PlanWalker {
 public:
  PlanWalker(const ModuleTree& tree, const PlanOptions& options)
      : tree_(tree), builder_(tree, options) {}

  Plan Decode(const Shape& latent);
  Plan Encode(const Shape& samples);

 private:
  bool observed() const { return builder_.observed(); }

  PlanTensor ConvOn(const ConvLayer& layer, PlanTensor& x) {
    PlanTensor y = builder_.Conv(layer, x, {}).raw;
    builder_.Observe(layer.module, y);
    return y;
  }

  // silu(norm(x.raw)), made along the way or now. Consumes x.raw when not kept.
  PlanTensor Normed(const NormLayer& norm, int nonlinearity, int dropout,
                    PlanActivation& x, bool keep_raw);
  PlanActivation Resnet(const ResnetBlock& block, PlanActivation x,
                        const NormLayer* next, bool want_raw);
  PlanActivation Attention(const AttentionBlock& block, PlanActivation x);
  PlanActivation Mid(const MidBlock& block, PlanActivation x,
                     const NormLayer* next);
  void UpBlocks(size_t level, PlanActivation x);
  PlanActivation Enlarge(const ResampleBlock& block, PlanTensor x,
                         const NormLayer* next);
  PlanActivation Shrink(const ResampleBlock& block, PlanTensor x,
                        const NormLayer* next);

  const ModuleTree& tree_;
  PlanBuilder builder_;
  bool is_first_chunk_ = true;
  int64_t step_frames_ = 1;
  int out_frame_ = 0;  // of the decoder: the next to be written
};

PlanTensor PlanWalker::Normed(const NormLayer& norm, int nonlinearity,
                              int dropout, PlanActivation& x, bool keep_raw) {
  if (!x.normed.empty()) return std::move(x.normed);
  if (!observed()) {
    return builder_.Norm(norm.module, &norm, x.raw, /*silu=*/true, !keep_raw);
  }
  PlanTensor y =
      builder_.Norm(norm.module, &norm, x.raw, /*silu=*/false, !keep_raw);
  builder_.Observe(norm.module, y);
  y = builder_.Norm(nonlinearity, nullptr, y, /*silu=*/true, true);
  builder_.Observe(nonlinearity, y);
  if (dropout >= 0) builder_.Observe(dropout, y);
  return y;
}

PlanActivation PlanWalker::Resnet(const ResnetBlock& block, PlanActivation x,
                                  const NormLayer* next, bool want_raw) {
  PlanTensor shortcut;
  if (block.has_shortcut) {
    shortcut = builder_.Conv(block.conv_shortcut, x.raw, {}).raw;
    builder_.Observe(block.conv_shortcut.module, shortcut);
  } else {
    builder_.Observe(block.conv_shortcut.module, x.raw);
  }
  PlanTensor h = Normed(block.norm1, block.nonlinearity, -1, x,
                        /*keep_raw=*/!block.has_shortcut);
  if (!block.has_shortcut) {
    shortcut = std::move(x.raw);
  } else if (!x.raw.empty()) {
    builder_.Release(x.raw);
  }
  x.raw.slots.clear();
  const bool fuses = builder_.Fuses(block.conv1);
  PlanActivation y = builder_.Conv(
      block.conv1, h, {.next_norm = &block.norm2, .want_raw = !fuses});
  builder_.Observe(block.conv1.module, y.raw);
  h = Normed(block.norm2, block.nonlinearity, block.dropout, y, false);
  if (!observed()) {
    return builder_.Conv(block.conv2, h,
                         {.residual = &shortcut,
                          .next_norm = next,
                          .want_raw = want_raw || next == nullptr ||
                                      !builder_.Fuses(block.conv2)});
  }
  y = builder_.Conv(block.conv2, h, {});
  builder_.Observe(block.conv2.module, y.raw);
  builder_.Add(y.raw, shortcut);
  builder_.Release(shortcut);
  builder_.Observe(block.module, y.raw);
  return y;
}

PlanActivation PlanWalker::Attention(const AttentionBlock& block,
                                     PlanActivation x) {
  PlanTensor h = builder_.Norm(block.norm.module, &block.norm, x.raw,
                               /*silu=*/false, /*in_place=*/false);
  builder_.Observe(block.norm.module, h, /*per_frame=*/true);
  PlanTensor qkv = builder_.Conv(block.to_qkv, h, {}).raw;
  builder_.Release(h);
  builder_.Observe(block.to_qkv.module, qkv, true);
  PlanTensor attended = builder_.Attend(block, qkv);
  builder_.Release(qkv);
  PlanActivation y;
  if (!observed()) {
    y = builder_.Conv(block.proj, attended, {.residual = &x.raw});
  } else {
    y = builder_.Conv(block.proj, attended, {});
    builder_.Observe(block.proj.module, y.raw, true);
    builder_.Add(y.raw, x.raw);
    builder_.Release(x.raw);
  }
  builder_.Release(attended);
  builder_.Observe(block.module, y.raw);
  return y;
}

PlanActivation PlanWalker::Mid(const MidBlock& block, PlanActivation x,
                               const NormLayer* next) {
  x = Resnet(block.resnet0, std::move(x), nullptr, true);
  x = Attention(block.attention, std::move(x));
  x = Resnet(block.resnet1, std::move(x), next, true);
  builder_.Observe(block.module, x.raw);
  return x;
}

PlanActivation PlanWalker::Enlarge(const ResampleBlock& block, PlanTensor x,
                                   const NormLayer* next) {
  builder_.Observe(block.reshape, x, /*per_frame=*/true, 1, /*enlarge=*/2);
  PlanActivation y = builder_.Conv(
      block.conv, x, {.next_norm = next, .resample = Resample::kUp});
  builder_.Release(x);
  builder_.Observe(block.conv.module, y.raw, true);
  builder_.Observe(block.sequential, y.raw, true);
  builder_.Observe(block.module, y.raw);
  return y;
}

// The rest of the decoder from up_blocks[level] on.
void PlanWalker::UpBlocks(size_t level, PlanActivation x) {
  const DecoderGraph& decoder = tree_.decoder;
  const UpBlock& block = decoder.up_blocks[level];
  for (size_t i = 0; i < block.resnets.size(); ++i) {
    const bool is_last = i + 1 == block.resnets.size();
    const NormLayer* next = nullptr;
    if (!is_last) {
      next = &block.resnets[i + 1].norm1;
    } else if (!block.has_upsampler) {
      next = &decoder.norm_out;
    }
    x = Resnet(block.resnets[i], std::move(x), next,
               /*want_raw=*/!is_last || block.has_upsampler);
  }
  if (!block.has_upsampler) {
    builder_.Observe(block.module, x.raw);
    PlanTensor h = Normed(decoder.norm_out, decoder.nonlinearity, -1, x, false);
    if (!x.raw.empty()) builder_.Release(x.raw);
    const int frames = h.frames;
    builder_.ConvToOutput(decoder.conv_out, h, out_frame_, decoder.module);
    out_frame_ += frames;
    return;
  }
  PlanTensor frames = std::move(x.raw);
  if (block.upsampler.has_time_conv && !is_first_chunk_) {
    const ConvLayer& time_conv = block.upsampler.time_conv;
    frames = builder_.Conv(time_conv, frames, {.folds = 2}).raw;
    builder_.Observe(time_conv.module, frames, false, /*folds=*/2);
  }
  bool is_last_in_time = true;
  for (size_t i = level + 1; i < decoder.up_blocks.size(); ++i) {
    is_last_in_time &= !decoder.up_blocks[i].has_upsampler ||
                       !decoder.up_blocks[i].upsampler.has_time_conv;
  }
  const int step =
      observed() || !is_last_in_time
          ? frames.frames
          : static_cast<int>(std::min<int64_t>(step_frames_, frames.frames));
  const NormLayer* next = &decoder.up_blocks[level + 1].resnets[0].norm1;
  for (int first = 0; first < frames.frames; first += step) {
    const int count = std::min(step, frames.frames - first);
    x = Enlarge(block.upsampler, PlanBuilder::Slice(frames, first, count),
                next);
    builder_.Observe(block.module, x.raw);
    UpBlocks(level + 1, std::move(x));
  }
}

Plan PlanWalker::Decode(const Shape& latent) {
  const DecoderGraph& decoder = tree_.decoder;
  const int batch = static_cast<int>(latent[0]);
  const int channels = static_cast<int>(latent[1]);
  const int frames = static_cast<int>(latent[2]);
  const int height = static_cast<int>(latent[3]);
  const int width = static_cast<int>(latent[4]);
  const size_t enlarging = decoder.up_blocks.size() - 1;
  const int64_t out_pixels =
      (int64_t{height} << enlarging) * (int64_t{width} << enlarging);
  step_frames_ = std::max<int64_t>(1, kStepPixels / (out_pixels * batch));

  PlanTensor latents;
  const bool at_once =
      observed() && !builder_.plan().options.quant_conv_per_chunk;
  const auto load = [&](int first, int count) {
    PlanTensor x = builder_.Load(height, width, channels, batch, first, count);
    PlanTensor y = builder_.Conv(tree_.post_quant_conv, x, {}).raw;
    builder_.Release(x);
    builder_.Observe(tree_.post_quant_conv.module, y);
    return y;
  };
  if (at_once) latents = load(0, frames);
  for (int t = 0; t < frames; ++t) {
    is_first_chunk_ = t == 0;
    PlanTensor z = at_once ? PlanBuilder::Slice(latents, t, 1) : load(t, 1);
    PlanActivation x;
    x.raw = ConvOn(decoder.conv_in, z);
    x = Mid(decoder.mid_block, std::move(x),
            &decoder.up_blocks[0].resnets[0].norm1);
    UpBlocks(0, std::move(x));
  }
  Plan plan = builder_.Finish();
  plan.batch = batch;
  plan.out_channels = static_cast<int>(decoder.conv_out.out_channels);
  plan.out_frames = out_frame_;
  plan.out_height = height << enlarging;
  plan.out_width = width << enlarging;
  return plan;
}

PlanActivation PlanWalker::Shrink(const ResampleBlock& block, PlanTensor x,
                                  const NormLayer* next) {
  builder_.Observe(block.reshape, x, /*per_frame=*/true, 1, /*enlarge=*/0);
  const bool in_time = block.has_time_conv && !is_first_chunk_;
  PlanActivation y = builder_.Conv(
      block.conv, x,
      {.next_norm = in_time ? nullptr : next, .resample = Resample::kDown});
  builder_.Release(x);
  builder_.Observe(block.conv.module, y.raw, true);
  builder_.Observe(block.sequential, y.raw, true);
  if (block.has_time_conv && is_first_chunk_) {
    builder_.KeepLast(block.time_conv, y.raw);
  } else if (block.has_time_conv) {
    y = builder_.Conv(block.time_conv, y.raw,
                      {.next_norm = next, .time_stride = 2});
    builder_.Observe(block.time_conv.module, y.raw);
  }
  builder_.Observe(block.module, y.raw);
  return y;
}

Plan PlanWalker::Encode(const Shape& samples) {
  const EncoderGraph& encoder = tree_.encoder;
  const int batch = static_cast<int>(samples[0]);
  const int frames = static_cast<int>(samples[2]);
  const int height = static_cast<int>(samples[3]);
  const int width = static_cast<int>(samples[4]);
  const bool at_once =
      observed() && !builder_.plan().options.quant_conv_per_chunk;
  PlanTensor moments;  // of all chunks, in time order, when at_once
  std::vector<PlanTensor> parts;
  FramePool latent_size;
  const auto finish = [&](PlanTensor& x) {
    PlanTensor y = ConvOn(tree_.quant_conv, x);
    builder_.Release(x);
    latent_size = builder_.FramesOf(y);
    builder_.ToOutput(y, out_frame_);
    out_frame_ += y.frames;
    builder_.Release(y);
  };
  for (int first = 0; first < frames;) {
    const int count = first == 0 ? 1 : std::min(kEncoderChunk, frames - first);
    is_first_chunk_ = first == 0;
    PlanTensor z = builder_.Load(height, width, static_cast<int>(samples[1]),
                                 batch, first, count);
    PlanActivation x;
    x.raw = ConvOn(encoder.conv_in, z);
    for (size_t i = 0; i < encoder.down_blocks.size(); ++i) {
      const DownBlock& block = encoder.down_blocks[i];
      const NormLayer* next =
          i + 1 < encoder.down_blocks.size()
              ? (encoder.down_blocks[i + 1].is_resample
                     ? nullptr
                     : &encoder.down_blocks[i + 1].resnet.norm1)
              : &encoder.mid_block.resnet0.norm1;
      if (block.is_resample) {
        x = Shrink(block.resample, std::move(x.raw), next);
      } else {
        x = Resnet(block.resnet, std::move(x), next, true);
      }
    }
    x = Mid(encoder.mid_block, std::move(x), &encoder.norm_out);
    PlanTensor h = Normed(encoder.norm_out, encoder.nonlinearity, -1, x, false);
    if (!x.raw.empty()) builder_.Release(x.raw);
    PlanTensor y = ConvOn(encoder.conv_out, h);
    builder_.Observe(encoder.module, y);
    if (at_once) {
      parts.push_back(std::move(y));
    } else {
      finish(y);
    }
    first += count;
  }
  if (at_once) {
    moments = {.pool = parts[0].pool, .batch = batch};
    for (const PlanTensor& part : parts) moments.frames += part.frames;
    for (int b = 0; b < batch; ++b) {
      for (const PlanTensor& part : parts) {
        for (int t = 0; t < part.frames; ++t) {
          moments.slots.push_back(part.Slot(b, t));
        }
      }
    }
    finish(moments);
  }
  Plan plan = builder_.Finish();
  plan.batch = batch;
  plan.out_channels = static_cast<int>(tree_.quant_conv.out_channels);
  plan.out_frames = out_frame_;
  plan.out_height = latent_size.height;
  plan.out_width = latent_size.width;
  return plan;
}

}  // namespace

Plan PlanDecode(const ModuleTree& tree, const Shape& latent,
                const PlanOptions& options) {
  return PlanWalker(tree, options).Decode(latent);
}

Plan PlanEncode(const ModuleTree& tree, const Shape& samples,
                const PlanOptions& options) {
  return PlanWalker(tree, options).Encode(samples);
}

}  // namespace firstframe::cuda
