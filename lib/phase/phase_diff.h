// Two sets of runs, phase by phase.

#ifndef LIB_PHASE_PHASE_DIFF_H_
#define LIB_PHASE_PHASE_DIFF_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "lib/base/json_writer.h"
#include "lib/phase/phase_document.h"

namespace firstframe {

struct PhaseDifference {
  std::string path;
  std::string name;
  int depth = 0;
  // Medians over the runs; empty where that side has no such phase.
  std::optional<int64_t> left_ns;
  std::optional<int64_t> right_ns;
  // The sides' samples do not overlap: with three or more runs a side, a
  // difference that chance hardly makes.
  bool is_separated = false;
};

struct PhaseDiff {
  PhaseDifference recording;
  std::vector<PhaseDifference> phases;  // a parent before its children
  int left_runs = 0;
  int right_runs = 0;
};

PhaseDiff DiffPhases(const PhaseDocument& left, const PhaseDocument& right);

struct PhaseDiffTextOptions {
  size_t width = 100;
  bool colour = false;
  int64_t min_ns = 1'000'000;  // smaller differences get no row
};

void WritePhaseDiffText(const PhaseDiff& diff,
                        const PhaseDiffTextOptions& options, std::ostream& out);

// Writes {"schema", "recording", "phases"} with medians and deltas.
void WritePhaseDiffJson(const PhaseDiff& diff, JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_DIFF_H_
