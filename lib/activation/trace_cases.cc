#include "lib/activation/trace_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/activation/activation_tracer.h"
#include "lib/activation/compare.h"
#include "lib/activation/trace_input.h"
#include "lib/activation/trace_stat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/stats/compute.h"
#include "lib/stats/mix.h"
#include "lib/tensor/convert.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/observer.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

// [batch, channels, frames, rows, columns]; what the goldens use.
const Shape kLatentShape = {1, 16, 3, 4, 6};

std::vector<TraceStat> EightStats() {
  return ParseTraceStats("abs_mean,sum,min,max,mean,std,shape,dtype").stats;
}

std::vector<TraceStat> AllStats() {
  return ParseTraceStats(
             "abs_mean,sum,min,max,mean,std,shape,dtype,numel,rms,nan,inf_pos,"
             "inf_neg,zero,h_set,h_pos,sk")
      .stats;
}

// Records into strings, as the hook would into a file.
class StringTrace : public ActivationObserver {
 public:
  explicit StringTrace(CasePrecision precision) : precision_(precision) {}

  absl::Status OnOutput(const Module& module,
                        const ObservedTensor& output) override {
    TensorView view = {
        output.dtype, output.shape,
        absl::MakeConstSpan(static_cast<const std::byte*>(output.data),
                            *CheckedSizeBytes(output.dtype, output.shape))};
    HostTensor rounded;
    if (precision_ == CasePrecision::kBFloat16) {
      FF_ASSIGN_OR_RETURN(rounded, ConvertTensor(view, DType::kBF16));
      view = rounded.view();
    }
    FF_ASSIGN_OR_RETURN(
        const TensorStats values,
        ComputeTensorStats(view, {.request = RequestFor(all_)}));
    TraceRecordKeys keys;
    keys.module = module.name;
    absl::StrAppend(
        &traces.eight,
        FormatTraceRecord(keys, eight_, values, view.dtype, view.shape), "\n");
    absl::StrAppend(
        &traces.all,
        FormatTraceRecord(keys, all_, values, view.dtype, view.shape), "\n");
    return absl::OkStatus();
  }

  CaseTraces traces;

 private:
  const CasePrecision precision_;
  const std::vector<TraceStat> eight_ = EightStats();
  const std::vector<TraceStat> all_ = AllStats();
};

void Scale(FloatTensor& tensor, float factor) {
  for (float& value : tensor.values) value *= factor;
}

// Elements of one output channel.
absl::Span<float> OutputChannel(FloatTensor& tensor, int64_t channel) {
  const int64_t size = tensor.values.size() / tensor.shape[0];
  return absl::MakeSpan(tensor.values).subspan(channel * size, size);
}

// Swaps the last two dimensions of each kernel.
void TransposeKernel(FloatTensor& w) {
  const int64_t rows = w.shape[w.shape.size() - 2], columns = w.shape.back();
  FF_CHECK(rows == columns);
  for (size_t begin = 0; begin < w.values.size(); begin += rows * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        std::swap(w.values[begin + i * columns + j],
                  w.values[begin + j * columns + i]);
      }
    }
  }
}

// Swaps input and output channels of a square layer.
void TransposeChannels(FloatTensor& w) {
  const int64_t channels = w.shape[0];
  FF_CHECK(channels == w.shape[1]);
  const int64_t kernel = w.values.size() / (channels * channels);
  for (int64_t i = 0; i < channels; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      std::swap_ranges(w.values.begin() + (i * channels + j) * kernel,
                       w.values.begin() + (i * channels + j + 1) * kernel,
                       w.values.begin() + (j * channels + i) * kernel);
    }
  }
}

// Makes a causal convolution see its last frame alone, as if the cache of the
// frames before had been lost.
void ForgetCache(FloatTensor& w) {
  const int64_t taps = w.shape[2], plane = w.shape[3] * w.shape[4];
  for (size_t i = 0; i < w.values.size(); ++i) {
    if (static_cast<int64_t>(i) / plane % taps != taps - 1) w.values[i] = 0;
  }
}

void RollChannels(FloatTensor& gamma) {
  std::rotate(gamma.values.begin(), gamma.values.begin() + 1,
              gamma.values.end());
}

void SwapFrames(FloatTensor& latent) {
  const int64_t frames = latent.shape[2];
  const int64_t plane = latent.shape[3] * latent.shape[4];
  for (int64_t c = 0; c < latent.shape[1]; ++c) {
    float* const first = latent.values.data() + c * frames * plane;
    std::swap_ranges(first + plane, first + 2 * plane, first + 2 * plane);
  }
}

void DropLastFrame(FloatTensor& latent) {
  latent = SliceFrames(latent, 0, latent.shape[2] - 1);
}

PlantedBug OnWeight(std::string what, std::string module,
                    std::function<void(FloatTensor&)> change,
                    int occurrence = 0,
                    absl::string_view parameter = "weight") {
  const std::string name = absl::StrCat(module, ".", parameter);
  return {std::move(what), std::move(module), occurrence,
          [name, change](CaseInputs& inputs) { change(inputs.Weight(name)); }};
}

void AddWeightBugs(std::vector<PlantedBug>* bugs) {
  const auto scale = [](float factor) {
    return [factor](FloatTensor& w) { Scale(w, factor); };
  };
  bugs->push_back(OnWeight("convolution x1.02",
                           "decoder.up_blocks.1.resnets.0.conv1",
                           scale(1.02f)));
  bugs->push_back(OnWeight("convolution x1.005",
                           "decoder.up_blocks.2.resnets.1.conv2",
                           scale(1.005f)));
  bugs->push_back(OnWeight("upsampling convolution x0.98",
                           "decoder.up_blocks.1.upsamplers.0.resample.1",
                           scale(0.98f)));
  bugs->push_back(OnWeight("shortcut x1.01",
                           "decoder.up_blocks.1.resnets.0.conv_shortcut",
                           scale(1.01f)));
  bugs->push_back(OnWeight("norm x1.01", "decoder.up_blocks.1.resnets.2.norm2",
                           scale(1.01f), 0, "gamma"));
  bugs->push_back(OnWeight(
      "bias +0.02", "decoder.up_blocks.0.resnets.2.conv1",
      [](FloatTensor& bias) {
        for (float& value : bias.values) value += 0.02f;
      },
      0, "bias"));
  bugs->push_back(OnWeight("kernel rows and columns swapped",
                           "decoder.up_blocks.2.resnets.0.conv1",
                           TransposeKernel));
  bugs->push_back(OnWeight("input and output channels swapped",
                           "decoder.mid_block.resnets.1.conv1",
                           TransposeChannels));
  bugs->push_back(OnWeight("norm channels off by one",
                           "decoder.up_blocks.2.resnets.2.norm1", RollChannels,
                           0, "gamma"));
  bugs->push_back(
      OnWeight("q and k swapped", "decoder.mid_block.attentions.0.to_qkv",
               [](FloatTensor& w) {
                 const auto third = w.values.size() / 3;
                 std::swap_ranges(w.values.begin(), w.values.begin() + third,
                                  w.values.begin() + third);
               }));
  bugs->push_back(
      OnWeight("one NaN weight", "decoder.up_blocks.3.resnets.1.conv1",
               [](FloatTensor& w) {
                 // In the newest frame's tap: the first call has no older ones.
                 w.values[(w.shape[2] - 1) * w.shape[3] * w.shape[4]] =
                     std::numeric_limits<float>::quiet_NaN();
               }));
  bugs->push_back(OnWeight("one channel dead",
                           "decoder.up_blocks.3.resnets.0.conv1",
                           [](FloatTensor& w) {
                             for (float& v : OutputChannel(w, 3)) v = 0;
                           }));
  bugs->push_back(OnWeight("one channel's sign flipped",
                           "decoder.up_blocks.2.resnets.1.conv1",
                           [](FloatTensor& w) {
                             for (float& v : OutputChannel(w, 5)) v = -v;
                           }));
  bugs->push_back(OnWeight("cache of earlier frames lost",
                           "decoder.up_blocks.0.resnets.0.conv1", ForgetCache,
                           1));
}

}  // namespace

FloatTensor& CaseInputs::Weight(absl::string_view name) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (tree->parameters[i].name == name) return weights[i];
  }
  FF_CHECK(!"a planted bug names a parameter that the model lacks");
  return weights[0];
}

std::vector<PlantedBug> PlantedBugs() {
  std::vector<PlantedBug> bugs;
  AddWeightBugs(&bugs);
  bugs.push_back(
      {"output channels reversed", "decoder.conv_out", 0, [](CaseInputs& in) {
         for (const char* name :
              {"decoder.conv_out.weight", "decoder.conv_out.bias"}) {
           FloatTensor& w = in.Weight(name);
           const auto size = w.values.size() / 3;
           std::swap_ranges(w.values.begin(), w.values.begin() + size,
                            w.values.begin() + 2 * size);
         }
       }});
  bugs.push_back({"last frame dropped", "post_quant_conv", 0,
                  [](CaseInputs& in) { DropLastFrame(in.latent); }});
  bugs.push_back({"two frames swapped", "post_quant_conv", 0,
                  [](CaseInputs& in) { SwapFrames(in.latent); }});
  bugs.push_back({"another latent", "post_quant_conv", 0, [](CaseInputs& in) {
                    FillSynthetic("latent.other", in.latent.shape, 0,
                                  absl::MakeSpan(in.latent.values));
                  }});
  return bugs;
}

CaseRunner::CaseRunner()
    : config_(*WanVaePreset("small")), tree_(BuildModuleTree(config_)) {}

CaseInputs CaseRunner::Inputs(uint64_t seed) const {
  CaseInputs inputs;
  inputs.tree = &tree_;
  for (const ParameterSpec& spec : tree_.parameters) {
    FloatTensor tensor = {.shape = spec.shape};
    tensor.values.resize(*CheckedNumElements(spec.shape));
    FillSynthetic(spec.name, spec.shape, 0, absl::MakeSpan(tensor.values));
    inputs.weights.push_back(std::move(tensor));
  }
  inputs.latent.shape = kLatentShape;
  inputs.latent.values.resize(*CheckedNumElements(kLatentShape));
  FillSynthetic(absl::StrCat("latent.", seed), kLatentShape, 0,
                absl::MakeSpan(inputs.latent.values));
  return inputs;
}

void CaseRunner::MakeVariant(CasePrecision precision, uint64_t seed,
                             CaseInputs* inputs) {
  uint64_t counter = seed << 40;
  for (FloatTensor& tensor : inputs->weights) {
    for (float& value : tensor.values) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      const uint32_t noise = static_cast<uint32_t>(GroupHash(counter++) >> 16);
      bits = precision == CasePrecision::kFloat32
                 ? bits ^ (noise & 1)
                 : (bits + (noise & 0xFFFF)) & 0xFFFF0000u;
      std::memcpy(&value, &bits, 4);
    }
  }
}

absl::StatusOr<CaseTraces> CaseRunner::Trace(const CaseInputs& inputs,
                                             CasePrecision precision) const {
  // One thread: the model is small, and many runs may share the machine.
  FF_ASSIGN_OR_RETURN(
      const auto model,
      BuildCpuWanVae(config_, {.threads = 1,
                               .likely_height = kLatentShape[3],
                               .likely_width = kLatentShape[4]}));
  FF_RETURN_IF_ERROR(model->AllocateParameters());
  for (size_t i = 0; i < inputs.weights.size(); ++i) {
    FF_RETURN_IF_ERROR(
        model->AssignParameter(static_cast<int>(i), ViewOf(inputs.weights[i])));
  }
  FF_RETURN_IF_ERROR(model->Finalize());
  StringTrace trace(precision);
  FF_RETURN_IF_ERROR(
      model->Decode(ViewOf(inputs.latent), {.observer = &trace}).status());
  return std::move(trace.traces);
}

absl::StatusOr<CaseOutcome> JudgeCase(std::string left, std::string right) {
  FF_ASSIGN_OR_RETURN(const TraceInput a,
                      TraceInput::FromString(std::move(left), "left"));
  FF_ASSIGN_OR_RETURN(const TraceInput b,
                      TraceInput::FromString(std::move(right), "right"));
  FF_ASSIGN_OR_RETURN(const Comparison c, CompareTraces(a, b, {}));
  CaseOutcome outcome;
  outcome.fired = c.divergence.first.has_value();
  if (outcome.fired) outcome.place = DescribePlace(c, *c.divergence.first);
  outcome.explanation = Explain(c);
  return outcome;
}

std::string GradeOf(const PlantedBug& bug, const CaseOutcome& outcome) {
  if (!outcome.fired) return "missed";
  std::string expected = bug.module;
  if (bug.occurrence > 0) {
    absl::StrAppend(&expected, " (occurrence ", bug.occurrence, ")");
  }
  return outcome.place == expected ? "exact" : "late";
}

}  // namespace firstframe
