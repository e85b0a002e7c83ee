// From one forward to a whole run: steps, guidance, step caching, sparse and
// causal attention, parallelism, training, and the three utilisations.
//
//   MFU           model / (time * peak * devices)
//   executed MFU  executed / (time * peak * devices)
//   HFU           hardware / (time * peak * devices)
//
//   model     what the dense model needs: every step, the full attention
//   square,
//             forward and backward, no recomputation (PaLM, arXiv:2204.02311
//             appendix B). A sparse or cached run is credited with work it
//             skipped, so this compares answers per second.
//   executed  of that, what ran: attention scaled by its density, skipped steps
//             without their blocks.
//   hardware  executed plus recomputation: gradient checkpointing and the
//   scores
//             that a fused attention backward computes again
//             (arXiv:2205.05198 section 5).

#ifndef LIB_FLOPS_RUN_COST_H_
#define LIB_FLOPS_RUN_COST_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "lib/flops/operator_cost.h"

namespace firstframe {

enum class TrainingMode { kNone, kFull, kLora };

// kFull recomputes every block in the backward pass, kSelective only the
// attention cores.
enum class Checkpointing { kNone, kFull, kSelective };

struct RunOptions {
  int64_t steps = 1;
  // Forwards a step: 2 when classifier-free guidance runs conditional and
  // unconditional one after the other. (One batch of both is batch 2 instead.)
  int64_t forwards_per_step = 1;
  // Of all forwards, how many reuse a cached residual (TeaCache and alike):
  // they pay for embeddings and head, not for blocks.
  int64_t cached_forwards = 0;

  // Fraction of the self-attention square that is computed: 1 for dense, the
  // kept share of blocks for VSA, STA, radial attention.
  double attention_density = 1.0;
  // Causal over this many equal blocks of the sequence, each attending to
  // itself and the past: a factor (n + 1) / 2n. 0 is bidirectional. Multiplies
  // with the density.
  int64_t causal_blocks = 0;

  // Devices that share one sample, by sequence and by tensor.
  int64_t sequence_parallel = 1;
  int64_t tensor_parallel = 1;
  // Groups of such devices, each with its own samples.
  int64_t data_parallel = 1;

  TrainingMode training = TrainingMode::kNone;
  Checkpointing checkpointing = Checkpointing::kNone;
  int64_t lora_rank = 0;
  int64_t gradient_accumulation = 1;
  // Backward of a fused attention: 2 products of the forward's size for each of
  // Q, K, V and the scores' gradient (factor 2), plus the scores again (2.5).
  double attention_backward_executed = 2.5;

  // Distillation, a training step: forwards of frozen or separately trained
  // copies of the same model, and updates (3 forwards each) of a critic.
  int64_t teacher_forwards = 0;
  int64_t critic_forwards = 0;
  int64_t critic_updates = 0;
};

// Operations of one training step on one sample batch.
struct TrainingStepCost {
  int64_t forward = 0;
  int64_t backward = 0;
  int64_t recompute = 0;  // gradient checkpointing
  int64_t attention = 0;  // of the forward, attention cores
  int64_t adapters = 0;   // of forward and backward, LoRA's own products
};

// Prices forward and backward of one step, attention backward at factor 2.
// Equal to torch's counter for full and LoRA training with and without
// checkpointing (testdata/flops/torch_training.json). LoRA adapters of `rank`
// sit on the attention projections. OutOfRange past int64_t.
absl::StatusOr<TrainingStepCost> TrainingCost(const ForwardCost& forward,
                                              const RunOptions& options);

struct RunCost {
  double forward = 0;  // one forward
  double model = 0;    // the run, all devices
  double executed = 0;
  double hardware = 0;
  int64_t devices = 1;
  double per_device_hardware = 0;
};

// Prices the run. InvalidArgument for counts out of range; OutOfRange past
// int64_t for a single step.
absl::StatusOr<RunCost> PriceRun(const ForwardCost& forward,
                                 const RunOptions& options);

struct Utilization {
  double tflops = 0;          // model rate of the job, 1e12 a second
  std::optional<double> mfu;  // fractions, of all devices' peak; over 1 is
  std::optional<double> executed_mfu;  // possible and never clamped
  std::optional<double> hfu;
  bool above_peak = false;  // some utilisation is over 1: the peak or the time
                            // is wrong, or the board boosts past its datasheet
};

// `seconds` of wall time for the run; `peak_tflops` of one device, if known.
// InvalidArgument unless seconds is positive and finite.
absl::StatusOr<Utilization> ComputeUtilization(
    const RunCost& cost, double seconds, std::optional<double> peak_tflops);

struct Roofline {
  double flops = 0;
  double bytes = 0;      // least traffic, each operand once
  double intensity = 0;  // flops a byte
  double ridge = 0;      // intensity at which compute and memory take as long
  bool compute_bound = false;
  double min_seconds = 0;  // sum over operators of the longer of the two
};

// `element_bytes` of activations and weights, `peak_tflops` and
// `memory_gb_per_s` of one device (10^9 bytes).
Roofline ComputeRoofline(const ForwardCost& forward, double element_bytes,
                         double peak_tflops, double memory_gb_per_s);

}  // namespace firstframe

#endif  // LIB_FLOPS_RUN_COST_H_
