#include "lib/flops/run_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

bool IsAttention(const OperatorCost& op) { return op.weight_elements == 0; }

// LoRA's two products beside a projection of [rows, k] x [k, n].
struct AdapterCost {
  int64_t forward = 0;
  int64_t backward = 0;
};

AdapterCost PriceAdapter(const OperatorCost& op, int64_t rank) {
  if (!op.takes_adapter || rank == 0) return {};
  const int64_t down = SaturatingProduct({2, op.rows, op.k, rank});
  const int64_t up = SaturatingProduct({2, op.rows, rank, op.n});
  AdapterCost cost;
  cost.forward = SaturatingProduct({op.repeats, SaturatingSum(down, up)});
  // Weight gradients of both, and the gradient between them; the gradient to
  // the input only where something upstream needs it.
  cost.backward = SaturatingSum(
      SaturatingProduct(
          {op.repeats, SaturatingSum(down, SaturatingSum(up, up))}),
      SaturatingProduct({op.repeats - op.leaf_repeats_lora, down}));
  return cost;
}

int64_t BackwardFlops(const OperatorCost& op, TrainingMode mode) {
  if (mode == TrainingMode::kLora) {
    const int64_t live = op.repeats - op.leaf_repeats_lora;
    return SaturatingProduct({live, op.flops, IsAttention(op) ? 2 : 1});
  }
  if (IsAttention(op)) return SaturatingProduct({2, op.repeats, op.flops});
  const int64_t input_gradients = op.repeats - op.leaf_repeats_full;
  return SaturatingProduct({op.repeats + input_gradients, op.flops});
}

absl::Status ValidateOptions(const RunOptions& options) {
  if (options.training == TrainingMode::kLora && options.lora_rank == 0) {
    return absl::InvalidArgumentError(
        "LoRA rank is 0, expected adapters to train");
  }
  const std::pair<const char*, int64_t> positive[] = {
      {"steps", options.steps},
      {"forwards per step", options.forwards_per_step},
      {"sequence parallel size", options.sequence_parallel},
      {"tensor parallel size", options.tensor_parallel},
      {"data parallel size", options.data_parallel},
      {"gradient accumulation", options.gradient_accumulation},
  };
  constexpr int64_t kMaxCount = int64_t{1} << 40;
  for (const auto& [name, value] : positive) {
    if (value < 1 || value > kMaxCount) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", value, ", expected 1 to 2^40"));
    }
  }
  const std::pair<const char*, int64_t> counts[] = {
      {"cached forwards", options.cached_forwards},
      {"causal blocks", options.causal_blocks},
      {"LoRA rank", options.lora_rank},
      {"teacher forwards", options.teacher_forwards},
      {"critic forwards", options.critic_forwards},
      {"critic updates", options.critic_updates},
  };
  for (const auto& [name, value] : counts) {
    if (value < 0 || value > kMaxCount) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", value, ", expected 0 to 2^40"));
    }
  }
  const double forwards = static_cast<double>(options.steps) *
                          static_cast<double>(options.forwards_per_step);
  if (static_cast<double>(options.cached_forwards) > forwards) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.cached_forwards, " cached forwards of ", forwards));
  }
  if (!(options.attention_density > 0 && options.attention_density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention density is ", options.attention_density,
                     ", expected more than 0 and at most 1"));
  }
  return absl::OkStatus();
}

double AttentionFactor(const RunOptions& options) {
  double factor = options.attention_density;
  if (options.causal_blocks > 0) {
    const double n = static_cast<double>(options.causal_blocks);
    factor *= (n + 1) / (2 * n);
  }
  return factor;
}

// One forward's operations split by what scales them.
struct ForwardParts {
  double total = 0;
  double self_attention = 0;
  double blocks = 0;
  double block_self_attention = 0;
};

ForwardParts Split(const ForwardCost& forward) {
  ForwardParts parts;
  for (const OperatorCost& op : forward.operators) {
    const double flops = static_cast<double>(op.TotalFlops());
    const bool is_self = op.operator_class == OperatorClass::kSelfAttentionCore;
    parts.total += flops;
    if (is_self) parts.self_attention += flops;
    if (op.in_block) parts.blocks += flops;
    if (op.in_block && is_self) parts.block_self_attention += flops;
  }
  return parts;
}

void PriceInference(const ForwardParts& parts, const RunOptions& options,
                    RunCost& cost) {
  const double forwards = static_cast<double>(options.steps) *
                          static_cast<double>(options.forwards_per_step);
  const double cached = static_cast<double>(options.cached_forwards);
  const double missing = 1 - AttentionFactor(options);
  cost.model = parts.total * forwards;
  cost.executed =
      (parts.total - missing * parts.self_attention) * (forwards - cached) +
      (parts.total - parts.blocks) * cached;
  cost.hardware = cost.executed;
}

absl::Status PriceTraining(const ForwardCost& forward,
                           const ForwardParts& parts, const RunOptions& options,
                           RunCost& cost) {
  FF_ASSIGN_OR_RETURN(const TrainingStepCost step,
                      TrainingCost(forward, options));
  const double extra_forwards =
      static_cast<double>(options.teacher_forwards + options.critic_forwards) +
      3.0 * static_cast<double>(options.critic_updates);
  const double missing = 1 - AttentionFactor(options);
  const double student = static_cast<double>(options.forwards_per_step);
  const double base =
      static_cast<double>(step.forward) + static_cast<double>(step.backward);
  // Forward, and twice that backward, of the self-attention square.
  const double skipped = missing * parts.self_attention;
  const double micro = static_cast<double>(options.steps) *
                       static_cast<double>(options.gradient_accumulation);
  cost.model = micro * (student * base + extra_forwards * parts.total);
  cost.executed = cost.model - micro * skipped * (3 * student + extra_forwards);
  double recompute = static_cast<double>(step.recompute);
  if (options.checkpointing == Checkpointing::kFull) {
    recompute -= missing * parts.block_self_attention;
  } else if (options.checkpointing == Checkpointing::kSelective) {
    recompute -= skipped;
  }
  const double score_recompute =
      (options.attention_backward_executed - 2.0) *
      (static_cast<double>(step.attention) - skipped);
  cost.hardware =
      cost.executed + micro * student * (recompute + score_recompute);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingStepCost> TrainingCost(const ForwardCost& forward,
                                              const RunOptions& options) {
  if (options.training == TrainingMode::kNone) {
    return absl::InvalidArgumentError("the run is not a training run");
  }
  TrainingStepCost cost;
  for (const OperatorCost& op : forward.operators) {
    const AdapterCost adapter = options.training == TrainingMode::kLora
                                    ? PriceAdapter(op, options.lora_rank)
                                    : AdapterCost{};
    const int64_t flops = SaturatingSum(op.TotalFlops(), adapter.forward);
    cost.forward = SaturatingSum(cost.forward, flops);
    cost.backward = SaturatingSum(
        cost.backward,
        SaturatingSum(BackwardFlops(op, options.training), adapter.backward));
    cost.adapters = SaturatingSum(
        cost.adapters, SaturatingSum(adapter.forward, adapter.backward));
    if (IsAttention(op)) {
      cost.attention = SaturatingSum(cost.attention, op.TotalFlops());
    }
    const bool recomputes =
        options.checkpointing == Checkpointing::kFull
            ? op.in_block
            : options.checkpointing == Checkpointing::kSelective &&
                  op.in_block && IsAttention(op);
    if (recomputes) cost.recompute = SaturatingSum(cost.recompute, flops);
  }
  if (std::max({cost.forward, cost.backward, cost.recompute}) ==
      kSaturatedFlops) {
    return absl::OutOfRangeError(
        "one training step costs more than 2^63 operations");
  }
  return cost;
}

absl::StatusOr<RunCost> PriceRun(const ForwardCost& forward,
                                 const RunOptions& options) {
  FF_RETURN_IF_ERROR(ValidateOptions(options));
  const ForwardParts parts = Split(forward);
  RunCost cost;
  cost.forward = parts.total;
  if (options.training == TrainingMode::kNone) {
    PriceInference(parts, options, cost);
  } else {
    FF_RETURN_IF_ERROR(PriceTraining(forward, parts, options, cost));
  }
  const double groups = static_cast<double>(options.data_parallel);
  cost.model *= groups;
  cost.executed *= groups;
  cost.hardware *= groups;
  cost.devices =
      SaturatingProduct({options.sequence_parallel, options.tensor_parallel,
                         options.data_parallel});
  cost.per_device_hardware = cost.hardware / static_cast<double>(cost.devices);
  return cost;
}

absl::StatusOr<Utilization> ComputeUtilization(
    const RunCost& cost, double seconds, std::optional<double> peak_tflops) {
  if (!(seconds > 0) || !std::isfinite(seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "measured time is ", seconds, " s, expected a positive number"));
  }
  Utilization result;
  result.tflops = cost.model / seconds / 1e12;
  if (!peak_tflops || !(*peak_tflops > 0)) return result;
  const double peak =
      *peak_tflops * 1e12 * static_cast<double>(cost.devices) * seconds;
  result.mfu = cost.model / peak;
  result.executed_mfu = cost.executed / peak;
  result.hfu = cost.hardware / peak;
  // A dense-equivalent MFU may honestly pass 1 where work is skipped; what ran
  // may not.
  result.above_peak = *result.executed_mfu > 1 || *result.hfu > 1;
  return result;
}

Roofline ComputeRoofline(const ForwardCost& forward, double element_bytes,
                         double peak_tflops, double memory_gb_per_s) {
  Roofline roofline;
  roofline.flops = static_cast<double>(forward.TotalFlops());
  roofline.bytes = forward.TotalBytes(element_bytes);
  roofline.intensity = roofline.bytes > 0 ? roofline.flops / roofline.bytes : 0;
  roofline.ridge = peak_tflops * 1e12 / (memory_gb_per_s * 1e9);
  roofline.compute_bound = roofline.intensity >= roofline.ridge;
  // Operator by operator, since a memory-bound one hides under no other.
  for (const OperatorCost& op : forward.operators) {
    const double compute =
        static_cast<double>(op.TotalFlops()) / (peak_tflops * 1e12);
    const double bytes = static_cast<double>(op.repeats) * element_bytes *
                         (static_cast<double>(op.input_elements) +
                          static_cast<double>(op.weight_elements) +
                          static_cast<double>(op.output_elements));
    roofline.min_seconds += std::max(compute, bytes / (memory_gb_per_s * 1e9));
  }
  return roofline;
}

}  // namespace firstframe
