#include "lib/activation/trace_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

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
  StringTrace(CasePrecision precision, std::optional<int64_t> step)
      : precision_(precision) {
    keys_.step = step;
  }

  // The latent, in `all` alone: FastVideo's hook records no inputs.
  absl::Status OnInput(const std::string& module, const TensorView& latent) {
    return Record(module, "in[0]", latent);
  }

  absl::Status OnOutput(const Module& module,
                        const ObservedTensor& output) override {
    return Record(
        module.name, "out",
        {output.dtype, output.shape,
         absl::MakeConstSpan(static_cast<const std::byte*>(output.data),
                             *CheckedSizeBytes(output.dtype, output.shape))});
  }

  CaseTraces traces;

 private:
  absl::Status Record(const std::string& module, const std::string& tensor,
                      TensorView view) {
    HostTensor rounded;
    if (precision_ == CasePrecision::kBFloat16) {
      FF_ASSIGN_OR_RETURN(rounded, ConvertTensor(view, DType::kBF16));
      view = rounded.view();
    }
    FF_ASSIGN_OR_RETURN(
        const TensorStats values,
        ComputeTensorStats(view, {.request = RequestFor(all_)}));
    keys_.module = module;
    keys_.tensor = tensor;
    const auto line = [&](const std::vector<TraceStat>& stats) {
      return FormatTraceRecord(keys_, stats, values, view.dtype, view.shape);
    };
    absl::StrAppend(&traces.all, line(all_), "\n");
    if (tensor == "out") absl::StrAppend(&traces.eight, line(eight_), "\n");
    return absl::OkStatus();
  }

  TraceRecordKeys keys_;
  const CasePrecision precision_;
  const std::vector<TraceStat> eight_ = EightStats();
  const std::vector<TraceStat> all_ = AllStats();
};

}  // namespace

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

absl::StatusOr<CaseTraces> CaseRunner::Trace(
    const CaseInputs& inputs, CasePrecision precision,
    std::optional<int64_t> step) const {
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
  StringTrace trace(precision, step);
  FF_RETURN_IF_ERROR(trace.OnInput("post_quant_conv", ViewOf(inputs.latent)));
  FF_RETURN_IF_ERROR(
      model->Decode(ViewOf(inputs.latent), {.observer = &trace}).status());
  return std::move(trace.traces);
}

absl::StatusOr<CaseTraces> CaseRunner::Run(CasePrecision precision,
                                           uint64_t latent_seed,
                                           uint64_t variant_seed,
                                           const PlantedBug* bug,
                                           bool has_steps) const {
  CaseTraces run;
  for (int step = 0; step < (has_steps ? kCaseSteps : 1); ++step) {
    CaseInputs inputs = Inputs(kCaseSteps * latent_seed + step);
    const bool has_bug = bug != nullptr && (!has_steps || bug->step == step);
    if (has_bug) bug->plant(inputs);
    // The bug sits in a healthy variant of its own, as a port's would. Every
    // step has the same weights.
    MakeVariant(precision, variant_seed, &inputs);
    FF_ASSIGN_OR_RETURN(
        const CaseTraces traces,
        Trace(inputs, precision,
              has_steps ? std::optional<int64_t>(step) : std::nullopt));
    run.eight += traces.eight;
    run.all += traces.all;
  }
  return run;
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

std::string GradeOf(const PlantedBug& bug, bool has_inputs,
                    const CaseOutcome& outcome) {
  if (!outcome.fired) return "missed";
  std::string expected = bug.module;
  if (bug.in_latent && has_inputs) absl::StrAppend(&expected, " in[0]");
  if (bug.step >= 0) absl::StrAppend(&expected, " (step ", bug.step, ")");
  if (bug.occurrence > 0) {
    absl::StrAppend(&expected, " (occurrence ", bug.occurrence, ")");
  }
  return outcome.place == expected ? "exact" : "late";
}

}  // namespace firstframe
