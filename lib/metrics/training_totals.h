// What training windows come to: the training half of a PerfReport.

#ifndef LIB_METRICS_TRAINING_TOTALS_H_
#define LIB_METRICS_TRAINING_TOTALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/metrics/change_point.h"
#include "lib/metrics/perf_record.h"
#include "lib/metrics/perf_totals.h"
#include "lib/metrics/window_steps.h"

namespace firstframe {

struct TrainingSummary {
  int64_t windows = 0;
  int64_t steps = 0;
  int64_t warmup = 0;
  double total_s = 0;
  PooledSteps step;  // over all ranks' steps
  std::vector<std::pair<std::string, double>> phases_s;  // mean a step
  double samples_per_s = 0;  // of all ranks that hold their own samples
  PerfRate dit;
  std::optional<MemoryPeaks> peaks;
  std::vector<PerfRank> ranks;
  std::vector<ChangePoint> changes;  // of step_s_p50 over rank 0's windows
  std::optional<double> eta_s;       // of the last window
};

// Keeps four numbers a window, whatever a record holds. Thread-compatible.
class TrainingTotals {
 public:
  // `keeps_samples` also keeps each window's phases, for Samples().
  explicit TrainingTotals(bool keeps_samples) : keeps_samples_(keeps_samples) {}

  void Add(const TrainWindowRecord& record);

  bool empty() const { return num_windows_ == 0; }
  TrainingSummary Summarize(double straggler_ratio) const;

  // The summary lines the processes wrote at exit, rank by rank. Percentiles
  // that the records leave open at the two decimals shown are marked "~".
  std::vector<std::string> SummaryLines() const;

  // Adds the samples of "step_s_p50", "step_s_p95", "phases_s.NAME" and
  // "train_peak_alloc_bytes", one a window.
  void AddSamples(std::map<std::string, std::vector<double>>& samples) const;

 private:
  struct Phase {
    std::string name;
    double sum_s = 0;
    std::vector<double> samples_s;
  };

  Phase& FindPhase(size_t expected, absl::string_view name);
  void AddThroughput(const WindowThroughput& throughput, double steps);

  const bool keeps_samples_;
  int64_t num_windows_ = 0;
  int64_t steps_ = 0;
  int64_t warmup_ = 0;
  double total_s_ = 0;
  double samples_ = 0;
  std::map<int64_t, std::vector<WindowSteps>> ranks_;
  std::vector<Phase> phases_;  // first seen first
  RateSum dit_;
  std::optional<MemoryPeaks> peaks_;
  std::vector<double> alloc_bytes_;
  std::optional<double> eta_s_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_TRAINING_TOTALS_H_
