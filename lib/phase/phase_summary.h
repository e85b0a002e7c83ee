// Several runs of the same program, phase by phase.

#ifndef LIB_PHASE_PHASE_SUMMARY_H_
#define LIB_PHASE_PHASE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

// Over runs, with linear interpolation (lib/base/percentile.h), rounded to 1
// ns.
struct DurationStatistics {
  int64_t min_ns = 0;
  int64_t median_ns = 0;
  int64_t p95_ns = 0;
  std::vector<int64_t> samples_ns;  // in order of the runs
};

struct PhaseStatistics {
  std::string path;  // names from the root, joined with '/'
  std::string name;
  int depth = 0;
  // Over the runs that have the phase; one that occurs more than once in a run
  // counts with the sum of its durations.
  DurationStatistics duration;
};

struct PhaseSummary {
  DurationStatistics recording;
  std::vector<PhaseStatistics> phases;  // a parent before its children
};

// An empty span yields an empty summary.
PhaseSummary SummarizePhases(absl::Span<const PhaseReport> runs);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_SUMMARY_H_
