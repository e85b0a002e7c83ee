// Renders a comparison: text, JSON lines, GitHub annotations, one HTML page.

#ifndef LIB_ACTIVATION_REPORT_H_
#define LIB_ACTIVATION_REPORT_H_

#include <ostream>
#include <string>

#include "lib/activation/compare.h"

namespace firstframe {

struct ReportOptions {
  int rows = 10;  // of the table: the rows that fired, first ones first
  // JSON lines: every pair, not those that fired alone. Pairs in runs of equal
  // lines are left out: compare with EqualLines::kRows for this.
  bool all_rows = false;
  bool limits = false;  // text: the detection limits of every sub-operation
  bool color = false;
  int columns = 80;
};

absl::string_view VerdictName(Verdict verdict);

// First divergence first, then a short table and the error over depth; without
// a divergence, what would have been seen.
void WriteText(const Comparison& comparison, const ReportOptions& options,
               std::ostream& out);

// Records by "kind": summary, divergence, trouble, warning, dtype, limit, row,
// unmatched.
// docs/formats/trace_diff.md has the keys.
void WriteJsonl(const Comparison& comparison, const ReportOptions& options,
                std::ostream& out);

// Workflow commands that annotate a GitHub Actions run.
void WriteGithub(const Comparison& comparison, std::ostream& out);

// A self-contained page: error over depth for each sub-operation, rows to click
// on, worst layers.
std::string RenderHtml(const Comparison& comparison);

// Eight heights on a log scale: the largest error of each of `width` stretches.
std::string Sparkline(const Comparison& comparison, size_t width);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_REPORT_H_
