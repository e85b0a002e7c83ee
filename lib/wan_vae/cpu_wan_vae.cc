#include "lib/wan_vae/cpu_wan_vae.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dnnl.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/cpu_buffer.h"
#include "lib/wan_vae/cpu_conv.h"
#include "lib/wan_vae/cpu_forward.h"
#include "lib/wan_vae/cpu_kernels.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// The encoder takes the first frame alone, then this many at a time.
constexpr int64_t kEncoderChunk = 4;

struct PlacedConv {
  const ConvLayer* layer;
  int64_t
      scale;  // its input is this many times as high and wide as the latents
};

void AppendResnet(const ResnetBlock& block, int64_t scale,
                  std::vector<PlacedConv>& convs) {
  convs.push_back({&block.conv1, scale});
  convs.push_back({&block.conv2, scale});
  if (block.has_shortcut) convs.push_back({&block.conv_shortcut, scale});
}

void AppendMid(const MidBlock& block, int64_t scale,
               std::vector<PlacedConv>& convs) {
  AppendResnet(block.resnet0, scale, convs);
  AppendResnet(block.resnet1, scale, convs);
  convs.push_back({&block.attention.to_qkv, scale});
  convs.push_back({&block.attention.proj, scale});
}

std::vector<PlacedConv> DecoderConvs(const ModuleTree& tree) {
  std::vector<PlacedConv> convs = {{&tree.post_quant_conv, 1},
                                   {&tree.decoder.conv_in, 1}};
  AppendMid(tree.decoder.mid_block, 1, convs);
  int64_t scale = 1;
  for (const UpBlock& block : tree.decoder.up_blocks) {
    for (const ResnetBlock& resnet : block.resnets) {
      AppendResnet(resnet, scale, convs);
    }
    if (!block.has_upsampler) continue;
    if (block.upsampler.has_time_conv) {
      convs.push_back({&block.upsampler.time_conv, scale});
    }
    scale *= 2;
    convs.push_back({&block.upsampler.conv, scale});
  }
  convs.push_back({&tree.decoder.conv_out, scale});
  return convs;
}

std::vector<PlacedConv> EncoderConvs(const ModuleTree& tree,
                                     int64_t spatial_factor) {
  int64_t scale = spatial_factor;
  std::vector<PlacedConv> convs = {{&tree.encoder.conv_in, scale}};
  for (const DownBlock& block : tree.encoder.down_blocks) {
    if (!block.is_resample) {
      AppendResnet(block.resnet, scale, convs);
      continue;
    }
    convs.push_back({&block.resample.conv, scale});
    scale /= 2;
    if (block.resample.has_time_conv) {
      convs.push_back({&block.resample.time_conv, scale});
    }
  }
  AppendMid(tree.encoder.mid_block, scale, convs);
  convs.push_back({&tree.encoder.conv_out, scale});
  convs.push_back({&tree.quant_conv, scale});
  return convs;
}

bool IsGamma(const ParameterSpec& spec) {
  return spec.name.size() > 6 &&
         spec.name.compare(spec.name.size() - 6, 6, ".gamma") == 0;
}

class OneDnnWanVae : public CpuWanVae {
 public:
  OneDnnWanVae(const WanVaeConfig& config, const CpuWanVaeOptions& options,
               std::unique_ptr<DnnlContext> context)
      : CpuWanVae(config), options_(options), context_(std::move(context)) {
    layers_.tree = &tree();
    layers_.context = context_.get();
    layers_.pool = &workspace_;
    layers_.convs.resize(tree().modules.size());
    layers_.gammas.resize(tree().parameters.size());
    parameters_.resize(tree().parameters.size());
    is_assigned_.resize(tree().parameters.size());
  }

  absl::Status AllocateParameters() override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const int64_t size = *CheckedNumElements(tree().parameters[i].shape);
      FF_ASSIGN_OR_RETURN(parameters_[i], parameter_pool_.Acquire(size));
    }
    return absl::OkStatus();
  }

  absl::Status AssignParameter(int index, const TensorView& value) override {
    FF_CHECK(index >= 0 && index < static_cast<int>(parameters_.size()));
    const ParameterSpec& spec = tree().parameters[index];
    CpuBuffer& buffer = parameters_[index];
    if (buffer.data() == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(spec.name, ": parameters are not allocated"));
    }
    if (value.shape != spec.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec.name, " has shape ", ShapeToString(value.shape),
                       ", expected ", ShapeToString(spec.shape)));
    }
    FF_RETURN_IF_ERROR(
        Annotate(ConvertToFloat(value.dtype, value.bytes,
                                absl::MakeSpan(buffer.data(), buffer.size())),
                 spec.name));
    is_assigned_[index] = true;
    return absl::OkStatus();
  }

  absl::Status Finalize() override {
    for (size_t i = 0; i < is_assigned_.size(); ++i) {
      if (is_assigned_[i]) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(tree().parameters[i].name, " has no value"));
    }
    SetComputeThreads(options_.threads);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!IsGamma(tree().parameters[i])) continue;
      const CpuBuffer values = std::move(parameters_[i]);
      layers_.gammas[i].assign(values.data(), values.data() + values.size());
    }
    FF_RETURN_IF_ERROR(LayOut(DecoderConvs(tree())));
    is_finalized_ = true;
    return absl::OkStatus();
  }

  int64_t ParameterBytes() const override {
    int64_t bytes = parameter_pool_.allocated_bytes();
    for (const auto& conv : layers_.convs) {
      if (conv != nullptr) bytes += conv->parameter_bytes();
    }
    for (const auto& gamma : layers_.gammas)
      bytes += gamma.size() * sizeof(float);
    return bytes;
  }

  int64_t WorkspaceBytes() const override {
    return workspace_.allocated_bytes() + context_->scratch_bytes();
  }

  int64_t LastRunFlops() const override { return flops_; }

 protected:
  absl::StatusOr<FloatTensor> DecodeTile(const FloatTensor& latents,
                                         const ChunkContext& context) override {
    const int64_t frames = latents.shape[2];
    const TileRun run = {
        .chunk = 1,
        .convs_per_chunk = NumConvs(DecoderConvs(tree())),
        .out_frames = 1 + config().TemporalFactor() * (frames - 1),
        .before = &tree().post_quant_conv};
    return RunTile(latents, context, run,
                   [](CpuForward& forward, CpuActivation x) {
                     return forward.DecodeChunk(std::move(x));
                   });
  }

  absl::StatusOr<FloatTensor> EncodeTile(const FloatTensor& samples,
                                         const ChunkContext& context) override {
    const int64_t factor = config().TemporalFactor();
    if (kEncoderChunk % factor != 0) {
      return absl::UnimplementedError(
          absl::StrCat("temporal factor ", factor,
                       ", expected 1, 2 or 4: the "
                       "encoder takes 4 frames at a time"));
    }
    const auto convs = EncoderConvs(tree(), config().SpatialFactor());
    FF_RETURN_IF_ERROR(LayOut(convs));
    const int64_t chunks = (samples.shape[2] - 1) / kEncoderChunk;
    const TileRun run = {.chunk = kEncoderChunk,
                         .convs_per_chunk = NumConvs(convs),
                         .out_frames = 1 + chunks * (kEncoderChunk / factor),
                         .after = &tree().quant_conv};
    return RunTile(samples, context, run,
                   [](CpuForward& forward, CpuActivation x) {
                     return forward.EncodeChunk(std::move(x));
                   });
  }

  bool is_finalized() const override { return is_finalized_; }

 private:
  struct TileRun {
    int64_t chunk = 1;            // frames of input after the first
    int64_t convs_per_chunk = 1;  // for progress
    int64_t out_frames = 0;
    const ConvLayer* before = nullptr;  // post_quant_conv
    const ConvLayer* after = nullptr;   // quant_conv
  };
  using RunChunk = absl::FunctionRef<absl::StatusOr<CpuActivation>(
      CpuForward&, CpuActivation)>;

  static int64_t NumConvs(const std::vector<PlacedConv>& convs) {
    return static_cast<int64_t>(convs.size());
  }

  // Moves the layers' weights from the parameters into oneDNN's layouts.
  absl::Status LayOut(const std::vector<PlacedConv>& convs) {
    for (const auto& [layer, scale] : convs) {
      std::unique_ptr<CpuConv>& conv = layers_.convs[layer->module];
      if (conv != nullptr) continue;
      conv = std::make_unique<CpuConv>(*layer, *context_);
      const ConvShape likely = {.batch = 1,
                                .frames = 2 + layer->kernel[0],
                                .height = options_.likely_height * scale,
                                .width = options_.likely_width * scale};
      const CpuBuffer weight = std::move(parameters_[layer->weight]);
      const CpuBuffer bias = std::move(parameters_[layer->bias]);
      FF_RETURN_IF_ERROR(
          Annotate(conv->SetWeights(weight.data(), bias.data(), likely),
                   tree().modules[layer->module].name));
    }
    parameter_pool_.ReleaseFree();
    return absl::OkStatus();
  }

  absl::StatusOr<FloatTensor> RunTile(const FloatTensor& input,
                                      const ChunkContext& context,
                                      const TileRun& run, RunChunk run_chunk) {
    SetComputeThreads(options_.threads);
    const int64_t frames = input.shape[2];
    const int64_t chunks = 1 + (frames - 1 + run.chunk - 1) / run.chunk;
    int64_t layers_done = 0;
    const auto after_layer = [&]() -> absl::Status {
      return context.checkpoint(
          static_cast<double>(++layers_done) /
          static_cast<double>(chunks * run.convs_per_chunk));
    };
    FF_RETURN_IF_ERROR(context.checkpoint(0.0));
    CpuForward forward(layers_, context.observer, after_layer);
    FF_ASSIGN_OR_RETURN(CpuActivation x, FromTensor(forward, input));
    const auto quant = [&](const ConvLayer& layer,
                           CpuActivation y) -> absl::StatusOr<CpuActivation> {
      FF_ASSIGN_OR_RETURN(y, forward.Pointwise(layer, std::move(y)));
      FF_RETURN_IF_ERROR(forward.Observe(layer.module, y));
      return y;
    };
    const bool whole = !context.quant_conv_per_chunk;
    if (run.before != nullptr && whole) {
      FF_ASSIGN_OR_RETURN(x, quant(*run.before, std::move(x)));
    }
    CpuActivation out;
    int64_t done = 0;
    for (int64_t first = 0; first < frames;) {
      const int64_t count = first == 0 ? 1 : run.chunk;
      FF_ASSIGN_OR_RETURN(CpuActivation y, Frames(forward, x, first, count));
      if (run.before != nullptr && !whole) {
        FF_ASSIGN_OR_RETURN(y, quant(*run.before, std::move(y)));
      }
      FF_ASSIGN_OR_RETURN(y, run_chunk(forward, std::move(y)));
      if (run.after != nullptr && !whole) {
        FF_ASSIGN_OR_RETURN(y, quant(*run.after, std::move(y)));
      }
      if (first == 0) {
        FF_ASSIGN_OR_RETURN(
            out, forward.Allocate(y.n, run.out_frames, y.h, y.w, y.c));
      }
      FF_CHECK(done + y.t <= out.t);
      const int64_t item = y.t * y.frame_size();
      CopyBlocks(y.data(), item, out.data() + done * y.frame_size(),
                 out.t * out.frame_size(), y.n, item);
      done += y.t;
      first += count;
    }
    FF_CHECK(done == run.out_frames);
    if (run.after != nullptr && whole) {
      FF_ASSIGN_OR_RETURN(out, quant(*run.after, std::move(out)));
    }
    flops_ = forward.flops();
    return ToTensor(out);
  }

  static absl::StatusOr<CpuActivation> FromTensor(CpuForward& forward,
                                                  const FloatTensor& tensor) {
    const Shape& s = tensor.shape;
    FF_ASSIGN_OR_RETURN(CpuActivation x,
                        forward.Allocate(s[0], s[2], s[3], s[4], s[1]));
    const int64_t positions = s[2] * s[3] * s[4];
    ToChannelsLast(tensor.values.data(), s[0], positions, s[1],
                   s[1] * positions, positions, x.data());
    return x;
  }

  static FloatTensor ToTensor(const CpuActivation& x) {
    FloatTensor tensor = {.shape = {x.n, x.c, x.t, x.h, x.w}};
    tensor.values.resize(x.size());
    const int64_t positions = x.t * x.h * x.w;
    ToChannelsFirst(x.data(), x.n, positions, x.c, x.c * positions, positions,
                    tensor.values.data());
    return tensor;
  }

  // Returns frames [first, first + count) of x.
  static absl::StatusOr<CpuActivation> Frames(CpuForward& forward,
                                              const CpuActivation& x,
                                              int64_t first, int64_t count) {
    FF_ASSIGN_OR_RETURN(CpuActivation y,
                        forward.Allocate(x.n, count, x.h, x.w, x.c));
    CopyBlocks(x.data() + first * x.frame_size(), x.t * x.frame_size(),
               y.data(), count * x.frame_size(), x.n, count * x.frame_size());
    return y;
  }

  const CpuWanVaeOptions options_;
  const std::unique_ptr<DnnlContext> context_;
  BufferPool parameter_pool_;
  BufferPool workspace_;
  std::vector<CpuBuffer> parameters_;  // as assigned, until laid out
  std::vector<char> is_assigned_;      // char: written from several threads
  CpuLayers layers_;
  bool is_finalized_ = false;
  int64_t flops_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuWanVae>> BuildCpuWanVae(
    const WanVaeConfig& config, const CpuWanVaeOptions& options) {
  FF_ASSIGN_OR_RETURN(auto context, DnnlContext::Create());
  return std::make_unique<OneDnnWanVae>(config, options, std::move(context));
}

std::string OneDnnVersion() {
  const dnnl_version_t* const version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

}  // namespace firstframe
