#include "lib/phase/phase_summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/base/percentile.h"
#include "lib/phase/phase_tree.h"

namespace firstframe {
namespace {

void Finish(DurationStatistics& statistics) {
  std::vector<double> sorted(statistics.samples_ns.begin(),
                             statistics.samples_ns.end());
  if (sorted.empty()) return;
  std::sort(sorted.begin(), sorted.end());
  statistics.min_ns = std::llround(sorted.front());
  statistics.median_ns = std::llround(PercentileOfSorted(sorted, 50));
  statistics.p95_ns = std::llround(PercentileOfSorted(sorted, 95));
}

// The union of the runs' trees. A path that no earlier run has goes after what
// came before it in its own run, so the order stays that of time and of the
// tree.
class Rows {
 public:
  void BeginRun() { next_ = 0; }

  void Add(const PhaseNode& node, const std::string& name) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].path != node.path) continue;
      next_ = i + 1;
      return;
    }
    rows_.insert(rows_.begin() + next_,
                 {.path = node.path, .name = name, .depth = node.depth});
    ++next_;
  }

  std::vector<PhaseStatistics>& rows() { return rows_; }

 private:
  std::vector<PhaseStatistics> rows_;
  size_t next_ = 0;
};

}  // namespace

PhaseSummary SummarizePhases(absl::Span<const PhaseReport> runs) {
  PhaseSummary summary;
  Rows rows;
  for (const PhaseReport& run : runs) {
    summary.recording.samples_ns.push_back(run.recording_duration_ns);
    absl::flat_hash_map<std::string, int64_t> sums;
    rows.BeginRun();
    for (const PhaseNode& node : BuildPhaseTree(run).nodes) {
      const PhaseRecord& phase = run.phases[node.index];
      rows.Add(node, phase.name);
      sums[node.path] += phase.duration_ns;
    }
    for (PhaseStatistics& row : rows.rows()) {
      if (const auto sum = sums.find(row.path); sum != sums.end()) {
        row.duration.samples_ns.push_back(sum->second);
      }
    }
  }
  Finish(summary.recording);
  for (PhaseStatistics& row : rows.rows()) Finish(row.duration);
  summary.phases = std::move(rows.rows());
  return summary;
}

}  // namespace firstframe
