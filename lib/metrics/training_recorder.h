// Measures a training loop: steps split into phases that add up to the step,
// aggregated in windows, without ever waiting for the device.
//
//   TrainingRecorder train(sink, markers);
//   train.SetModel({.params = ..., .trainable = ..., ...});
//   while (...) {
//     MicroStepScope micro(train);                     // one accumulation step
//     { PhaseScope phase(train, Phase::kVaeEncode); ... }
//     { PhaseScope phase(train, Phase::kForward);
//       phase.SetShape(tokens, batch); ... }
//     { PhaseScope phase(train, Phase::kBackward); ... }
//     { PhaseScope phase(train, Phase::kClip); ... }
//     { OptimizerScope step(train, &optimizer, is_boundary); ... }
//   }
//   train.Finish();
//
// A global step lasts from the close of the previous optimizer step to its own,
// so that waiting for data falls inside steps. Between scopes time is `data`
// (from leaving a micro-step to entering the next) or `prep` (from entering a
// micro-step to its first measured work); the rest is `other`.

#ifndef LIB_METRICS_TRAINING_RECORDER_H_
#define LIB_METRICS_TRAINING_RECORDER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/flops/compat_model.h"
#include "lib/metrics/memory_probe.h"
#include "lib/metrics/perf_record.h"
#include "lib/metrics/perf_sink.h"
#include "lib/timing/deferred_queue.h"
#include "lib/timing/marker.h"

namespace firstframe {

// In the order in which they occur; records name them so.
enum class Phase {
  kData,
  kPrep,
  kVaeEncode,
  kVaeDecode,
  kTextEncoder,
  kAux,
  kForward,
  kBackward,
  kClip,
  kOptimizer,
  kOther,
};
inline constexpr int kNumPhases = 11;

// "data", "prep", "vae_enc", ...
absl::string_view PhaseName(Phase phase);

// The model being trained, and how.
struct TrainedModel {
  CompatModel model;
  int64_t trainable = 0;  // parameters that need a gradient
  bool checkpointing = false;
  int64_t sequence_parallel = 1;  // ranks that share one sample
};

// One settled step.
struct StepRecord {
  int64_t step = 0;
  bool is_warmup = false;
  double total_s = 0;
  int64_t micro_steps = 0;
  std::array<double, kNumPhases> phases_s{};
  double overrun_s = 0;  // phases beyond the step's wall clock
  int64_t tokens = 0;    // a sample; 0: not captured
  int64_t samples = 0;
};

// Aggregates settled steps into a window. Warm-up steps are left out, unless
// there are no others. Every rate is a sum over a sum; steps without tokens add
// neither work nor time to FLOPs. `steps` must not be empty.
TrainWindowRecord AggregateWindow(const std::vector<StepRecord>& steps,
                                  const PerfSettings& settings,
                                  const std::optional<TrainedModel>& model,
                                  std::optional<double> device_peak_tflops);

// Thread-compatible: a training loop runs on one thread.
class TrainingRecorder {
 public:
  // As for RequestRecorder.
  TrainingRecorder(PerfSink& sink, MarkerSource& markers,
                   MemoryProbe* memory = nullptr,
                   std::function<double()> wall_s = nullptr);
  // Calls Finish().
  ~TrainingRecorder();
  TrainingRecorder(const TrainingRecorder&) = delete;
  TrainingRecorder& operator=(const TrainingRecorder&) = delete;

  // May be called at any time; the next window uses it.
  void SetModel(TrainedModel model);
  void SetPeakTflops(double peak_tflops);

  // Settles what is queued, writes the last, partial window and the summary.
  // Later calls do nothing.
  void Finish();

 private:
  friend class MicroStepScope;
  friend class PhaseScope;
  friend class OptimizerScope;

  struct OpenStep {
    int64_t index = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    std::array<std::vector<MarkerPair>, kNumPhases> pairs;
    int64_t micro_steps = 0;
    int64_t tokens = 0;
    int64_t samples = 0;
  };

  OpenStep& Current(int64_t now_ns);
  void Add(Phase phase, const MarkerPair& pair);
  void EnterMicroStep();
  void ExitMicroStep();
  void CloseHead(int64_t now_ns);
  void CloseStep(int64_t now_ns);
  bool IsReady(const OpenStep& step);
  void Drain(bool force);
  void Settle(const OpenStep& step);
  void EmitWindow();

  PerfSink& sink_;
  MarkerSource& markers_;
  MemoryProbe* const memory_;
  const std::function<double()> wall_s_;
  std::optional<TrainedModel> model_;
  std::optional<double> peak_tflops_;

  int64_t num_steps_ = 0;
  std::optional<OpenStep> step_;
  DeferredQueue<OpenStep> pending_;
  std::vector<StepRecord> window_;
  std::vector<double> measured_step_s_;

  int depth_ = 0;  // of phases that exclude others
  bool is_head_open_ = false;
  int64_t micro_enter_ns_ = 0;
  std::optional<int64_t> previous_exit_ns_;
  const void* boundary_owner_ = nullptr;
  bool is_finished_ = false;
};

// One micro-step of gradient accumulation.
class MicroStepScope {
 public:
  explicit MicroStepScope(TrainingRecorder& train) : train_(train) {
    train_.EnterMicroStep();
  }
  ~MicroStepScope() { train_.ExitMicroStep(); }
  MicroStepScope(const MicroStepScope&) = delete;
  MicroStepScope& operator=(const MicroStepScope&) = delete;

 private:
  TrainingRecorder& train_;
};

// One call of a model, the backward pass, or gradient clipping. Inside another
// phase, the backward pass included, it measures nothing: what checkpointing
// recomputes belongs to the backward.
class PhaseScope {
 public:
  PhaseScope(TrainingRecorder& train, Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

  // Of kForward: tokens a sample (the first call of a step counts) and samples
  // of this call.
  void SetShape(int64_t tokens, int64_t batch);

 private:
  TrainingRecorder& train_;
  const Phase phase_;
  const bool is_outermost_;
  Marker start_;
  int64_t tokens_ = 0;
  int64_t samples_ = 0;
};

// One optimizer's step. `is_boundary`: gradients were synchronised, so weights
// really change. The first optimizer to step at a boundary closes global steps
// from then on; the others' time still counts as `opt`.
class OptimizerScope {
 public:
  OptimizerScope(TrainingRecorder& train, const void* optimizer,
                 bool is_boundary);
  ~OptimizerScope();
  OptimizerScope(const OptimizerScope&) = delete;
  OptimizerScope& operator=(const OptimizerScope&) = delete;

 private:
  TrainingRecorder& train_;
  const void* const optimizer_;
  const bool is_boundary_;
  const bool is_outermost_;
  Marker start_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_TRAINING_RECORDER_H_
