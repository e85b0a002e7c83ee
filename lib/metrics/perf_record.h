// The records of VIDEOX_PERF and their two renderings: one JSON object a line,
// with exactly the original's keys, and the original's log lines.
// docs/formats/perf_records.md describes every key.

#ifndef LIB_METRICS_PERF_RECORD_H_
#define LIB_METRICS_PERF_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

// Times of one component over one request.
struct StageSummary {
  int64_t count = 0;
  double total_ms = 0;
  double mean_ms = 0;
  double std_ms = 0;  // sample standard deviation, 0 for one value
  double min_ms = 0;
  double max_ms = 0;
};

// Summarises `values_ms`, which must not be empty.
StageSummary SummarizeStage(const std::vector<double>& values_ms);

// What the transformer did in a request ("dit").
struct DitThroughput {
  int64_t params = 0;
  int64_t tokens = 0;
  int64_t batch = 0;
  int64_t devices = 1;
  double flops_per_fwd = 0;
  double attn_share = 0;
  double tflops = 0;
  std::optional<double> peak_tflops;  // of all devices
  std::optional<double> mfu;
};

// What the VAE did ("vae"): not in the original, and absent from its records.
struct VaeThroughput {
  double flops_per_call = 0;
  int64_t calls = 0;
  double tflops = 0;
  std::optional<double> peak_tflops;
  std::optional<double> mfu;
};

struct MemoryPeaks {
  int64_t alloc_bytes = 0;
  int64_t reserved_bytes = 0;
};

struct RequestRecord {
  double ts = 0;  // seconds since 1970, at the end of the request
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t req = 0;
  bool warmup = false;
  double e2e_s = 0;
  std::vector<std::pair<std::string, StageSummary>> stages;  // first seen first
  std::optional<DitThroughput> dit;
  std::optional<VaeThroughput> vae;
  std::string device;  // "cuda:0"; empty: no device, and no peaks
  std::optional<MemoryPeaks> peaks;
};

// FLOPs of the steps of a window that carried tokens.
struct PricedThroughput {
  int64_t params = 0;
  int64_t trainable = 0;
  double tokens = 0;
  int64_t priced_steps = 0;
  double priced_s = 0;
  double flops_coef = 0;
  double flops_coef_hw = 0;
  std::string flops_coef_reason;
  double flops_per_step = 0;
  double attn_share = 0;
  int64_t devices = 1;
  double tflops = 0;
  double hw_tflops = 0;
  std::optional<double> peak_tflops;
  std::optional<double> mfu;
  std::optional<double> hfu;
};

struct WindowThroughput {
  double samples_per_s = 0;  // of this rank
  double samples = 0;        // a step, mean
  double wall_s = 0;
  int64_t dp = 1;
  using Priced = PricedThroughput;
  // Only where steps were priced.
  std::optional<Priced> priced;
};

struct TrainWindowRecord {
  double ts = 0;
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t step_first = 0;
  int64_t step_last = 0;
  int64_t steps = 0;
  int64_t warmup_excluded = 0;
  double step_s_p50 = 0;
  double step_s_p95 = 0;
  std::vector<std::pair<std::string, double>> phases_s;
  double micro_steps = 0;
  double overrun_s = 0;
  std::string device;
  std::optional<MemoryPeaks> peaks;
  std::optional<WindowThroughput> throughput;
  std::optional<double> eta_s;
};

// One JSON object without a line end. Numbers that are not finite become null.
std::string ToJson(const RequestRecord& record);
std::string ToJson(const TrainWindowRecord& record);

// One line without a line end: `tag` (see PerfSettings::Tag) and the record in
// the original's form; a "vae" segment comes last where there is one.
std::string FormatRequest(absl::string_view tag, const RequestRecord& record);
std::string FormatTrainWindow(absl::string_view tag,
                              const TrainWindowRecord& record);

// The summary lines at exit, or nothing when nothing was measured.
struct RequestSummaryInput {
  std::vector<double> e2e_s;  // of measured requests
  int64_t warmup_excluded = 0;
  double transformer_ms = 0;  // over all forwards of measured requests
  int64_t transformer_calls = 0;
};
std::optional<std::string> FormatRequestSummary(
    absl::string_view tag, const RequestSummaryInput& input);

// Of the times of single steps. An estimate, put together from windows, is
// marked ("p50 ~0.13s").
struct StepPercentile {
  double seconds = 0;
  bool is_estimate = false;
};
std::optional<std::string> FormatTrainSummary(absl::string_view tag,
                                              int64_t steps, StepPercentile p50,
                                              StepPercentile p95,
                                              double total_s);

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_RECORD_H_
