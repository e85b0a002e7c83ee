// A phase report as a waterfall of text.

#ifndef LIB_PHASE_PHASE_TEXT_H_
#define LIB_PHASE_PHASE_TEXT_H_

#include <cstddef>
#include <ostream>

#include "absl/types/span.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

struct PhaseTextOptions {
  size_t width = 100;   // columns; below 60 the rows are wider than asked
  bool colour = false;  // ANSI escapes
  bool unicode = true;  // else ASCII only, but for the names
  // Gaps shorter than this part of the recording get no row of their own.
  double min_gap_share = 0.005;
  // Phases shorter than this part get no row, unless they failed or a row below
  // needs them; 0 shows all. How many are left out is said at the end.
  double min_share = 0;
  int max_depth = 1000;  // deeper phases get no row, but for failed ones
};

// Writes one row a phase: the tree of names, start, duration and share of the
// recording, and a bar on the time axis; below a failed phase its error; at the
// end the total and how much of it phases name.
void WritePhaseText(const PhaseReport& report, const PhaseTextOptions& options,
                    std::ostream& out);

// Writes min, median and p95 of each phase over the runs.
void WritePhaseSummaryText(absl::Span<const PhaseReport> runs,
                           const PhaseTextOptions& options, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_TEXT_H_
