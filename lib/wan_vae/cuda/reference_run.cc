#include "lib/wan_vae/cuda/reference_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/check.h"
#include "lib/wan_vae/cuda/reference_rounding.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe::cuda::testing {
namespace {

// Frames are [height][width][channels], without a pitch; empty until written.
using Frame = std::vector<float>;

class Runner {
 public:
  Runner(const Plan& plan, const std::vector<std::vector<float>>& parameters,
         const FloatTensor& input,
         const std::function<void(int, const FloatTensor&)>& observe)
      : plan_(plan), parameters_(parameters), input_(input), observe_(observe) {
    frames_.resize(plan.pools.empty() ? 0 : plan.pools[0].slots);
    output_.shape = {plan.batch, plan.out_channels, plan.out_frames,
                     plan.out_height, plan.out_width};
    output_.values.assign(int64_t{plan.batch} * plan.out_channels *
                              plan.out_frames * plan.out_height *
                              plan.out_width,
                          NAN);
  }

  FloatTensor Run() {
    for (const PlanOp& op : plan_.ops) Execute(op);
    return std::move(output_);
  }

 private:
  const FramePool& Pool(int index) const { return plan_.pools[index]; }
  // A frame is known by its first slot; writing one destroys what overlaps.
  const Frame& Read(int pool, int slot) const {
    FF_CHECK(slot >= 0);
    const Frame& frame = frames_[slot];
    FF_CHECK(static_cast<int64_t>(frame.size()) == Elements(pool));
    return frame;
  }
  Frame& Write(int pool, int slot) {
    const int64_t slots =
        (Pool(pool).FrameBytes() + kSlotBytes - 1) / kSlotBytes;
    FF_CHECK(slot >= 0 && slot + slots <= Pool(pool).slots);
    for (int first = slot - 1; first >= 0; --first) {
      const int64_t reach =
          (static_cast<int64_t>(frames_[first].size()) * 2 + kSlotBytes - 1) /
          kSlotBytes;  // at least: elements have two bytes or more
      if (first + reach > slot) frames_[first].clear();
    }
    for (int64_t i = slot + 1; i < slot + slots; ++i) frames_[i].clear();
    frames_[slot].resize(Elements(pool));
    return frames_[slot];
  }
  // What has been written to a frame is stored as its pool stores it.
  void Store(int pool, Frame& frame) const {
    if (Pool(pool).is_float) return;
    for (float& v : frame) v = RoundToBf16(v);
  }
  int64_t Elements(int pool) const {
    return int64_t{Pool(pool).height} * Pool(pool).width * Pool(pool).channels;
  }

  void Execute(const PlanOp& op) {
    switch (op.kind) {
      case PlanOpKind::kFromPlanes:
        return FromPlanes(op);
      case PlanOpKind::kConv:
        return Conv(op);
      case PlanOpKind::kNorm:
        return Norm(op);
      case PlanOpKind::kAdd:
        for (const PlannedFrame& f : op.frames) {
          const Frame from = Read(op.residual_pool, f.residual);
          Frame& to = frames_[f.out[0]];
          FF_CHECK(to.size() == from.size());
          for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
          Store(op.out_pool, to);
        }
        return;
      case PlanOpKind::kPack:
        return Pack(op);
      case PlanOpKind::kSoftmax:
        return Softmax(op);
      case PlanOpKind::kToOutput:
        return ToOutput(op);
      case PlanOpKind::kPlanesToOutput:
        return PlanesToOutput(op);
      case PlanOpKind::kObserve:
        return Observe(op);
    }
  }

  void FromPlanes(const PlanOp& op) {
    const FramePool& pool = Pool(op.out_pool);
    const int64_t plane = int64_t{pool.height} * pool.width;
    for (size_t i = 0; i < op.slots.size(); ++i) {
      Frame& frame = Write(op.out_pool, op.slots[i]);
      for (int c = 0; c < pool.channels; ++c) {
        const int64_t from =
            ((int64_t{op.batch_item} * pool.channels + c) * input_.shape[2] +
             op.first_frame + static_cast<int64_t>(i)) *
            plane;
        for (int64_t p = 0; p < plane; ++p) {
          frame[p * pool.channels + c] = input_.values[from + p];
        }
      }
      Store(op.out_pool, frame);
    }
  }

  // One value of what the window's tap (i, j) of output pixel (y, x) sees.
  static float At(const Frame& frame, const FramePool& pool,
                  const ConvVariant& v, int y, int x, int i, int j, int c) {
    int height = pool.height;
    int width = pool.width;
    if (v.resample == Resample::kDown) {
      y = 2 * y + i;
      x = 2 * x + j;
    } else {
      y += i - v.window / 2;
      x += j - v.window / 2;
    }
    if (v.resample == Resample::kUp) height *= 2, width *= 2;
    if (y < 0 || x < 0 || y >= height || x >= width) return 0;
    if (v.resample == Resample::kUp) y /= 2, x /= 2;
    return frame[(int64_t{y} * pool.width + x) * pool.channels + c];
  }

  void Conv(const PlanOp& op) {
    const FramePool& in = Pool(op.in_pool);
    int height = in.height;
    int width = in.width;
    if (op.variant.resample == Resample::kUp) height *= 2, width *= 2;
    if (op.variant.resample == Resample::kDown) height /= 2, width /= 2;
    const int window = op.variant.window;
    const int taps = window * window;
    const int time_taps = op.layer ? static_cast<int>(op.layer->kernel[0]) : 1;
    if (op.to_chunk_planes) {
      planes_.resize(std::max<size_t>(
          planes_.size(), size_t{1} * plan_.batch * op.out_channels *
                              op.num_frames * height * width));
    }
    for (const PlannedFrame& f : op.frames) {
      std::vector<float> sums(int64_t{height} * width * op.out_channels);
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          for (int n = 0; n < op.out_channels; ++n) {
            double sum = op.layer ? parameters_[op.layer->bias][n] : 0.0;
            for (int t = 0; t < time_taps; ++t) {
              if (f.in[t] < 0) continue;
              const Frame& frame = Read(op.in_pool, f.in[t]);
              for (int tap = 0; tap < taps; ++tap) {
                for (int k = 0; k < op.in_channels; ++k) {
                  const int64_t at =
                      ((int64_t{n} * op.in_channels + k) * time_taps + t) *
                          taps +
                      tap;
                  const float weight = op.layer
                                           ? parameters_[op.layer->weight][at]
                                           : dynamic_[at];
                  const float value = At(frame, in, op.variant, y, x,
                                         tap / window, tap % window, k);
                  sum += double{RoundOperand(op.variant, weight)} *
                         RoundOperand(op.variant, value);
                }
              }
            }
            sums[(int64_t{y} * width + x) * op.out_channels + n] =
                static_cast<float>(sum);
          }
        }
      }
      StoreConv(op, f, sums, int64_t{height} * width);
    }
  }

  void StoreConv(const PlanOp& op, const PlannedFrame& f,
                 std::vector<float>& sums, int64_t pixels) {
    const int channels = op.out_channels;
    if (op.to_chunk_planes) {
      for (int64_t i = 0; i < pixels * channels; ++i) {
        planes_[(i % channels * op.num_frames + f.out[0]) * pixels +
                i / channels] = sums[i];
      }
      return;
    }
    if (op.residual_pool >= 0) {
      const Frame& residual = Read(op.residual_pool, f.residual);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += residual[i];
    }
    if (op.out_pool >= 0) {
      const int split = op.split_channel ? op.split_channel : channels;
      FF_CHECK(split == Pool(op.out_pool).channels);
      for (int side = 0; side < channels / split; ++side) {
        Frame& out = Write(op.out_pool, f.out[side]);
        for (int64_t i = 0; i < pixels * split; ++i) {
          out[i] = sums[i / split * channels + side * split + i % split];
        }
        Store(op.out_pool, out);
      }
    }
    if (op.norm_pool >= 0) {
      FF_CHECK(op.norm->channels == channels);
      Frame& out = Write(op.norm_pool, f.norm);
      out = sums;
      NormalizeAndSilu(out, op.norm, true);
      Store(op.norm_pool, out);
    }
  }

  void NormalizeAndSilu(Frame& frame, const NormLayer* norm, bool silu) const {
    const int64_t channels = norm ? norm->channels : 1;
    for (size_t p = 0; p < frame.size() / channels; ++p) {
      float* pixel = frame.data() + p * channels;
      if (norm != nullptr) {
        double square = 0;
        for (int c = 0; c < channels; ++c)
          square += double{pixel[c]} * pixel[c];
        const double scale =
            std::sqrt(channels) / std::max(std::sqrt(square), 1e-12);
        for (int c = 0; c < channels; ++c) {
          pixel[c] = static_cast<float>(pixel[c] * scale *
                                        parameters_[norm->gamma][c]);
        }
      }
      for (int c = 0; silu && c < channels; ++c) {
        pixel[c] = static_cast<float>(pixel[c] / (1.0 + std::exp(-pixel[c])));
      }
    }
  }

  void Norm(const PlanOp& op) {
    for (const PlannedFrame& f : op.frames) {
      Frame values = Read(op.in_pool, f.in[0]);
      NormalizeAndSilu(values, op.norm, op.apply_silu);
      Store(op.out_pool, values);
      Write(op.out_pool, f.out[0]) = std::move(values);
    }
  }

  void Pack(const PlanOp& op) {
    const Frame& frame = Read(op.in_pool, op.slots[0]);
    const int channels = Pool(op.in_pool).channels;
    dynamic_.resize(int64_t{op.pack_n} * op.pack_k);
    for (int n = 0; n < op.pack_n; ++n) {
      for (int k = 0; k < op.pack_k; ++k) {
        const int pixel = op.is_transposed ? k : n;
        const int channel = op.first_channel + (op.is_transposed ? n : k);
        dynamic_[int64_t{n} * op.pack_k + k] =
            frame[int64_t{pixel} * channels + channel];
      }
    }
  }

  void Softmax(const PlanOp& op) {
    const int columns = Pool(op.in_pool).channels;
    Frame values = Read(op.in_pool, op.slots[0]);
    for (size_t row = 0; row < values.size() / columns; ++row) {
      float* v = values.data() + row * columns;
      const double largest = *std::max_element(v, v + columns);
      double sum = 0;
      for (int i = 0; i < columns; ++i) {
        sum += std::exp((v[i] - largest) * op.scale);
      }
      for (int i = 0; i < columns; ++i) {
        v[i] = static_cast<float>(std::exp((v[i] - largest) * op.scale) / sum);
      }
    }
    Store(op.out_pool, values);
    Write(op.out_pool, op.slots[1]) = std::move(values);
  }

  void ToOutput(const PlanOp& op) {
    const FramePool& pool = Pool(op.in_pool);
    const int64_t plane = int64_t{pool.height} * pool.width;
    for (size_t i = 0; i < op.slots.size(); ++i) {
      const Frame& frame = Read(op.in_pool, op.slots[i]);
      for (int64_t j = 0; j < plane * pool.channels; ++j) {
        output_.values[((int64_t{op.batch_item} * pool.channels +
                         j % pool.channels) *
                            plan_.out_frames +
                        op.first_frame + static_cast<int64_t>(i)) *
                           plane +
                       j / pool.channels] = frame[j];
      }
    }
  }

  void PlanesToOutput(const PlanOp& op) {
    const int64_t plane = int64_t{plan_.out_height} * plan_.out_width;
    const int64_t run = op.num_frames * plane;
    for (int64_t i = 0; i < int64_t{plan_.batch} * plan_.out_channels; ++i) {
      std::copy_n(planes_.begin() + i * run, run,
                  output_.values.begin() +
                      (i * plan_.out_frames + op.first_frame) * plane);
    }
  }

  void Observe(const PlanOp& op) {
    if (!observe_) return;
    FloatTensor out = {.shape = op.shape};
    int64_t size = 1;
    for (const int64_t extent : op.shape) size *= extent;
    if (op.to_chunk_planes) {
      out.values.assign(planes_.begin(), planes_.begin() + size);
      return observe_(op.module, out);
    }
    out.values.assign(size, NAN);
    const FramePool& pool = Pool(op.in_pool);
    const int64_t height = op.shape[op.shape.size() - 2];
    const int64_t width = op.shape.back();
    const int64_t plane = height * width;
    const int64_t all = static_cast<int64_t>(op.slots.size()) / op.folds;
    const int64_t frames = all / op.batch_item;
    const int64_t channels = int64_t{pool.channels} * op.folds;
    const int scale = std::max(op.enlarge, 1);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t f = 0; f < all; ++f) {
        const Frame& frame =
            Read(op.in_pool, op.slots[f * op.folds + c / pool.channels]);
        const int64_t at =
            op.per_frame ? f * channels + c
                         : (f / frames * channels + c) * frames + f % frames;
        for (int64_t p = 0; p < plane; ++p) {
          const int64_t y = p / width / scale;
          const int64_t x = p % width / scale;
          out.values[at * plane + p] =
              y < pool.height && x < pool.width
                  ? frame[(y * pool.width + x) * pool.channels +
                          c % pool.channels]
                  : 0.0f;
        }
      }
    }
    observe_(op.module, out);
  }

  const Plan& plan_;
  const std::vector<std::vector<float>>& parameters_;
  const FloatTensor& input_;
  const std::function<void(int, const FloatTensor&)>& observe_;
  std::vector<Frame> frames_;  // by first slot
  std::vector<float> dynamic_;
  std::vector<float> planes_;
  FloatTensor output_;
};

}  // namespace

std::vector<std::vector<float>> SyntheticParameters(const ModuleTree& tree) {
  std::vector<std::vector<float>> parameters;
  for (const ParameterSpec& spec : tree.parameters) {
    int64_t size = 1;
    for (const int64_t extent : spec.shape) size *= extent;
    parameters.emplace_back(size);
    FillSynthetic(spec.name, spec.shape, 0, absl::MakeSpan(parameters.back()));
  }
  return parameters;
}

FloatTensor RunPlan(
    const Plan& plan, const std::vector<std::vector<float>>& parameters,
    const FloatTensor& input,
    const std::function<void(int, const FloatTensor&)>& observe) {
  return Runner(plan, parameters, input, observe).Run();
}

}  // namespace firstframe::cuda::testing
