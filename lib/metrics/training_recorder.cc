#include "lib/metrics/training_recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/percentile.h"
#include "lib/metrics/exact_sum.h"

namespace firstframe {
namespace {

double SystemSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

absl::string_view PhaseName(Phase phase) {
  constexpr absl::string_view kNames[kNumPhases] = {
      "data", "prep", "vae_enc", "vae_dec", "text_encoder", "aux",
      "fwd",  "bwd",  "clip",    "opt",     "other"};
  return kNames[static_cast<int>(phase)];
}

TrainingRecorder::TrainingRecorder(PerfSink& sink, MarkerSource& markers,
                                   MemoryProbe* memory,
                                   std::function<double()> wall_s)
    : sink_(sink),
      markers_(markers),
      memory_(memory),
      wall_s_(wall_s ? std::move(wall_s) : SystemSeconds) {
  if (memory_ != nullptr && markers_.HasDevice()) memory_->ResetPeak();
}

TrainingRecorder::~TrainingRecorder() { Finish(); }

void TrainingRecorder::SetModel(TrainedModel model) {
  model_ = std::move(model);
}

void TrainingRecorder::SetPeakTflops(double peak_tflops) {
  peak_tflops_ = peak_tflops;
}

TrainingRecorder::OpenStep& TrainingRecorder::Current(int64_t now_ns) {
  if (!step_) {
    step_ = OpenStep();
    step_->index = num_steps_;
    step_->start_ns = now_ns;
  }
  return *step_;
}

void TrainingRecorder::Add(Phase phase, const MarkerPair& pair) {
  Current(pair.start.host_ns).pairs[static_cast<size_t>(phase)].push_back(pair);
}

void TrainingRecorder::EnterMicroStep() {
  const Marker now = markers_.MarkHost();
  OpenStep& step = Current(now.host_ns);
  if (previous_exit_ns_) {
    // Host clock by definition: nothing is given to the device in that gap.
    Add(Phase::kData, {{*previous_exit_ns_, nullptr}, now});
  }
  ++step.micro_steps;
  is_head_open_ = true;
  micro_enter_ns_ = now.host_ns;
}

void TrainingRecorder::ExitMicroStep() {
  is_head_open_ = false;
  previous_exit_ns_ = markers_.MarkHost().host_ns;
}

// Ends `prep` at the first measured work of the micro-step. Host clock: an
// event pair would measure how long the phase before takes to drain.
void TrainingRecorder::CloseHead(int64_t now_ns) {
  if (!is_head_open_) return;
  is_head_open_ = false;
  Add(Phase::kPrep, {{micro_enter_ns_, nullptr}, {now_ns, nullptr}});
}

void TrainingRecorder::CloseStep(int64_t now_ns) {
  if (!step_) return;
  step_->end_ns = now_ns;
  ++num_steps_;
  pending_.Push(*std::move(step_));
  step_.reset();
  Current(now_ns);
  is_head_open_ = false;
  Drain(/*force=*/false);
}

bool TrainingRecorder::IsReady(const OpenStep& step) {
  for (const std::vector<MarkerPair>& pairs : step.pairs) {
    for (const MarkerPair& pair : pairs) {
      if (!markers_.IsReady(pair)) return false;
    }
  }
  return true;
}

void TrainingRecorder::Drain(bool force) {
  pending_.Drain([this](const OpenStep& step) { return IsReady(step); },
                 [this](OpenStep step) { Settle(step); }, force);
}

void TrainingRecorder::Settle(const OpenStep& step) {
  StepRecord record;
  record.step = step.index;
  record.is_warmup = step.index < sink_.settings().warmup;
  record.total_s = Seconds(step.end_ns - step.start_ns);
  record.micro_steps = step.micro_steps;
  record.tokens = step.tokens;
  record.samples = step.samples;
  for (int i = 0; i < kNumPhases; ++i) {
    int64_t sum_ns = 0;
    for (const MarkerPair& pair : step.pairs[i]) {
      sum_ns += markers_.SpanNs(pair);
      markers_.Recycle(pair);
    }
    record.phases_s[i] = Seconds(sum_ns);
  }
  const double residual = record.total_s - ExactSum(record.phases_s);
  record.phases_s[static_cast<size_t>(Phase::kOther)] = std::max(0.0, residual);
  record.overrun_s = std::max(0.0, -residual);
  if (!record.is_warmup) measured_step_s_.push_back(record.total_s);
  window_.push_back(std::move(record));
  if (static_cast<int64_t>(window_.size()) >= sink_.settings().every) {
    EmitWindow();
  }
}

void TrainingRecorder::EmitWindow() {
  const std::vector<StepRecord> window = std::exchange(window_, {});
  if (window.empty()) return;
  const PerfSettings& settings = sink_.settings();
  TrainWindowRecord record =
      AggregateWindow(window, settings, model_, peak_tflops_);
  record.ts = wall_s_();
  // The original names a training device without its index.
  if (markers_.HasDevice()) {
    record.device = "cuda";
    if (memory_ != nullptr) record.peaks = memory_->Peaks();
  }
  sink_.Log(FormatTrainWindow(settings.Tag(), record));
  if (settings.level >= 2) {
    for (const StepRecord& step : window) {
      std::string line = absl::StrFormat("%s   step %d %.3fs:", settings.Tag(),
                                         step.step, step.total_s);
      for (int i = 0; i < kNumPhases; ++i) {
        if (step.phases_s[i] == 0 && static_cast<Phase>(i) != Phase::kOther) {
          continue;
        }
        absl::StrAppendFormat(&line, " %s %.3f",
                              PhaseName(static_cast<Phase>(i)),
                              step.phases_s[i]);
      }
      sink_.Log(line);
    }
  }
  sink_.Append(ToJson(record));
  if (memory_ != nullptr && markers_.HasDevice()) memory_->ResetPeak();
}

void TrainingRecorder::Finish() {
  if (is_finished_) return;
  is_finished_ = true;
  Drain(/*force=*/true);
  EmitWindow();
  if (step_) {  // an open step is dropped, as in the original
    for (const std::vector<MarkerPair>& pairs : step_->pairs) {
      for (const MarkerPair& pair : pairs) markers_.Recycle(pair);
    }
    step_.reset();
  }
  if (measured_step_s_.empty()) return;
  std::sort(measured_step_s_.begin(), measured_step_s_.end());
  const auto line = FormatTrainSummary(
      sink_.settings().Tag(), static_cast<int64_t>(measured_step_s_.size()),
      {PercentileOfSorted(measured_step_s_, 50)},
      {PercentileOfSorted(measured_step_s_, 95)}, ExactSum(measured_step_s_));
  if (line) sink_.Log(*line);
}

PhaseScope::PhaseScope(TrainingRecorder& train, Phase phase)
    : train_(train), phase_(phase), is_outermost_(train.depth_ == 0) {
  ++train_.depth_;
  if (!is_outermost_) return;
  start_ = train_.markers_.Mark();
  train_.CloseHead(start_.host_ns);
}

PhaseScope::~PhaseScope() {
  --train_.depth_;
  if (!is_outermost_) return;
  train_.Add(phase_, {start_, train_.markers_.Mark()});
  if (train_.memory_ != nullptr && train_.markers_.HasDevice()) {
    train_.memory_->Sample();
  }
  if (samples_ == 0) return;
  TrainingRecorder::OpenStep& step = *train_.step_;
  if (step.tokens == 0) step.tokens = tokens_;
  step.samples += samples_;
}

void PhaseScope::SetShape(int64_t tokens, int64_t batch) {
  tokens_ = tokens;
  samples_ = batch;
}

OptimizerScope::OptimizerScope(TrainingRecorder& train, const void* optimizer,
                               bool is_boundary)
    : train_(train),
      optimizer_(optimizer),
      is_boundary_(is_boundary),
      is_outermost_(train.depth_ == 0),
      start_(train.markers_.Mark()) {
  ++train_.depth_;
  // The original leaves `prep` open here, and so counts twice when clipping or
  // an optimizer comes first in a micro-step.
  train_.CloseHead(start_.host_ns);
}

OptimizerScope::~OptimizerScope() {
  --train_.depth_;
  const Marker end = train_.markers_.Mark();
  const MarkerPair pair{start_, end};
  if (is_outermost_) {
    train_.Add(Phase::kOptimizer, pair);
  } else {
    train_.markers_.Recycle(pair);
  }
  if (!is_boundary_) return;
  if (train_.boundary_owner_ == nullptr) train_.boundary_owner_ = optimizer_;
  if (train_.boundary_owner_ == optimizer_) train_.CloseStep(end.host_ns);
}

}  // namespace firstframe
