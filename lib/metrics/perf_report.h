// Figures of any number of VIDEOX_PERF records: several ranks, files, kinds.

#ifndef LIB_METRICS_PERF_REPORT_H_
#define LIB_METRICS_PERF_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/metrics/change_point.h"
#include "lib/metrics/perf_record.h"

namespace firstframe {

struct Distribution {
  int64_t count = 0;
  double mean = 0;
  double min = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

// Of values in any order; all zero when there are none.
Distribution DescribeValues(std::vector<double> values);

struct ReportOptions {
  bool include_warmup = false;
  // Of the first records of a rank, requests to leave out beside warm-up.
  int64_t skip = 0;
  // A rank whose median is over this multiple of the median of all ranks'
  // medians is a straggler.
  double straggler_ratio = 1.05;
  bool keep_requests = false;  // for requests()
};

// Accumulates records; figures are asked for at any time. Thread-compatible.
class PerfReport {
 public:
  explicit PerfReport(ReportOptions options) : options_(options) {}

  void Add(const RequestRecord& record);
  void Add(const TrainWindowRecord& record);

  struct Stage {
    std::string name;
    int64_t requests = 0;
    int64_t calls = 0;
    double total_s = 0;
    double share = 0;      // of the requests' end-to-end time
    Distribution call_ms;  // of the requests' means; min and max of all calls
  };
  // Sums over sums; peaks weighted by time.
  struct Rate {
    double flops = 0;
    double seconds = 0;
    double attn_share = 0;
    std::optional<double> tflops;
    std::optional<double> mfu;
    std::optional<double> hfu;
  };
  struct Rank {
    int64_t rank = 0;
    int64_t count = 0;  // requests or steps
    double p50_s = 0;
    double ratio = 1;  // to the median of all ranks
    bool is_straggler = false;
  };
  struct Requests {
    int64_t total = 0;
    int64_t warmup = 0;
    int64_t skipped = 0;
    Distribution e2e_s;
    double total_s = 0;
    std::optional<double> per_hour;  // of one rank's time, as the original has
    std::vector<Stage> stages;       // by name
    Rate dit;
    Rate vae;
    std::optional<MemoryPeaks> peaks;  // largest
    std::vector<Rank> ranks;
    std::vector<ChangePoint> changes;  // over requests in order, rank 0 first
  };
  struct Training {
    int64_t windows = 0;
    int64_t steps = 0;
    int64_t warmup = 0;
    double total_s = 0;
    // Put together from windows: an estimate unless all windows agree.
    double step_s_p50 = 0;
    double step_s_p95 = 0;
    bool is_estimate = false;
    std::vector<std::pair<std::string, double>> phases_s;  // mean a step
    double samples_per_s = 0;  // of all ranks that hold their own samples
    Rate dit;
    std::optional<MemoryPeaks> peaks;
    std::vector<Rank> ranks;
    std::vector<ChangePoint> changes;  // of step_s_p50 over rank 0's windows
    std::optional<double> eta_s;       // of the last window
  };

  bool has_requests() const { return num_requests_ > 0; }
  bool has_training() const { return !windows_.empty(); }
  Requests SummarizeRequests() const;
  Training SummarizeTraining() const;

  // The summary lines a process would have written at exit, rank by rank.
  std::vector<std::string> SummaryLines() const;

  // Samples by name, for comparison with another report: "e2e_s", "stage NAME
  // (ms/request)", "step_s_p50", "peak_alloc_bytes", ... Larger is worse.
  std::map<std::string, std::vector<double>> Samples() const;

  // For plots: the first kMaxKept measured requests if they are kept, and all
  // windows.
  const std::vector<RequestRecord>& requests() const { return kept_requests_; }
  const std::vector<TrainWindowRecord>& windows() const { return windows_; }

 private:
  struct RankRequests {
    int64_t seen = 0;
    int64_t warmup = 0;
    std::vector<double> e2e_s;
    double transformer_ms = 0;
    int64_t transformer_calls = 0;
  };
  struct StageValues {
    int64_t calls = 0;
    double total_ms = 0;
    double min_ms = 0;
    double max_ms = 0;
    std::vector<double> mean_ms;     // a request
    std::vector<double> request_ms;  // total a request
  };
  struct RateSum {
    double flops = 0;
    double seconds = 0;
    double attention_flops = 0;
    double hardware_flops = 0;
    double peak_flops = 0;    // of all devices over the same seconds
    double peaked_flops = 0;  // flops of records with a peak
    double peaked_hardware = 0;
    Rate Finish() const;
  };

  std::vector<Rank> RankTable(
      const std::map<int64_t, std::vector<double>>& values,
      const std::map<int64_t, int64_t>& counts) const;

  const ReportOptions options_;
  int64_t num_requests_ = 0;
  int64_t num_skipped_ = 0;
  std::map<int64_t, RankRequests> ranks_;
  std::map<std::string, StageValues> stages_;
  RateSum dit_;
  RateSum vae_;
  std::optional<MemoryPeaks> request_peaks_;
  std::vector<double> request_alloc_bytes_;
  static constexpr size_t kMaxKept = 100000;
  std::vector<RequestRecord> kept_requests_;
  std::vector<TrainWindowRecord> windows_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_REPORT_H_
