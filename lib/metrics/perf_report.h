// Figures of any number of VIDEOX_PERF records: several ranks, files, kinds.

#ifndef LIB_METRICS_PERF_REPORT_H_
#define LIB_METRICS_PERF_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/metrics/change_point.h"
#include "lib/metrics/perf_record.h"
#include "lib/metrics/perf_totals.h"
#include "lib/metrics/training_totals.h"

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
// The same of values whose sum is known.
Distribution DescribeValues(std::vector<double> values, double sum);

struct ReportOptions {
  bool include_warmup = false;
  // Of the first records of a rank, requests to leave out beside warm-up.
  int64_t skip = 0;
  // A rank whose median is over this multiple of the median of all ranks'
  // medians is a straggler.
  double straggler_ratio = 1.05;
  bool keep_records = false;  // for requests() and windows()
  bool keep_samples = false;  // for Samples()
};

// Accumulates records; figures are asked for at any time. Thread-compatible.
class PerfReport {
 public:
  explicit PerfReport(ReportOptions options)
      : options_(options), training_(options.keep_samples) {}

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
  struct Requests {
    int64_t total = 0;
    int64_t warmup = 0;
    int64_t skipped = 0;
    Distribution e2e_s;
    double total_s = 0;
    std::optional<double> per_hour;  // of one rank's time, as the original has
    std::vector<Stage> stages;       // by name
    PerfRate dit;
    PerfRate vae;
    std::optional<MemoryPeaks> peaks;  // largest
    std::vector<PerfRank> ranks;
    std::vector<ChangePoint> changes;  // over requests in order, rank 0 first
  };
  bool has_requests() const { return num_requests_ > 0; }
  bool has_training() const { return !training_.empty(); }
  Requests SummarizeRequests() const;
  TrainingSummary SummarizeTraining() const {
    return training_.Summarize(options_.straggler_ratio);
  }

  // The summary lines a process would have written at exit, rank by rank.
  std::vector<std::string> SummaryLines() const;

  // Samples by name, for comparison with another report: "e2e_s",
  // "stages.NAME.total_ms", "stages.NAME.mean_ms", "phases_s.NAME",
  // "peak_alloc_bytes", ... Larger is worse. Needs ReportOptions::keep_samples.
  std::map<std::string, std::vector<double>> Samples() const;

  // For plots, if they are kept: the first kMaxKept of each, of requests only
  // the measured ones.
  static constexpr size_t kMaxKept = 100000;
  const std::vector<RequestRecord>& requests() const { return kept_requests_; }
  const std::vector<TrainWindowRecord>& windows() const {
    return kept_windows_;
  }

 private:
  struct RankRequests {
    int64_t seen = 0;
    int64_t warmup = 0;
    std::vector<double> e2e_s;
    double transformer_ms = 0;
    int64_t transformer_calls = 0;
  };
  struct StageValues {
    explicit StageValues(absl::string_view stage);

    std::string name;
    bool is_transformer = false;
    bool is_vae = false;
    int64_t calls = 0;
    double total_ms = 0;
    double min_ms = 0;
    double max_ms = 0;
    std::vector<double> mean_ms;     // a request
    std::vector<double> request_ms;  // total a request; if samples are kept
  };
  // What the components did in one request.
  struct Busy {
    double transformer_s = 0;
    int64_t transformer_calls = 0;
    double vae_s = 0;
  };

  StageValues& FindStage(size_t expected, absl::string_view name);
  Busy AddStages(const RequestRecord& record);
  void AddRates(const RequestRecord& record, const Busy& busy);

  const ReportOptions options_;
  int64_t num_requests_ = 0;
  int64_t num_skipped_ = 0;
  std::map<int64_t, RankRequests> ranks_;
  std::vector<StageValues> stages_;  // first seen first
  RateSum dit_;
  RateSum vae_;
  std::optional<MemoryPeaks> request_peaks_;
  std::vector<double> request_alloc_bytes_;
  TrainingTotals training_;
  std::vector<RequestRecord> kept_requests_;
  std::vector<TrainWindowRecord> kept_windows_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_REPORT_H_
