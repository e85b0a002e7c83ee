#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/activation/detection_limits.h"
#include "lib/activation/pair_metrics.h"
#include "lib/activation/report.h"
#include "lib/activation/report_parts.h"

namespace firstframe {
namespace {

std::vector<size_t> FiredRows(const Divergence& d) {
  std::vector<size_t> fired;
  for (size_t i = 0; i < d.rows.size(); ++i) {
    if (d.rows[i].Fires()) fired.push_back(i);
  }
  return fired;
}

std::string ErrorText(double value) {
  if (value < 0) return "-";
  if (value == 0) return "0";
  return absl::StrFormat("%.2g", value);
}

std::string NoteOf(const RowVerdict& v) {
  if (v.Has(RowVerdict::kFoldedParent)) return "contains one above";
  if (v.Has(RowVerdict::kIsolated)) return "isolated";
  return "";
}

void WriteTable(const Comparison& c, const ReportOptions& options,
                std::ostream& out) {
  const std::vector<size_t> fired = FiredRows(c.divergence);
  if (fired.empty() || options.rows <= 0) return;
  size_t width = 6;
  const size_t shown = std::min<size_t>(fired.size(), options.rows);
  std::vector<std::string> places;
  for (size_t k = 0; k < shown; ++k) {
    places.push_back(Printable(DescribePlace(c, fired[k])));
    width = std::max(width, places[k].size());
  }
  out << absl::StrFormat("\n  %-*s  %9s  %9s  %8s  %-9s %s\n",
                         static_cast<int>(width), "module", "statistics",
                         "elements", "jump", "by", "");
  for (size_t k = 0; k < shown; ++k) {
    const RowVerdict& v = c.divergence.rows[fired[k]];
    out << absl::StrFormat(
        "  %-*s  %10s  %9s  %8s  %-9s %s\n", static_cast<int>(width), places[k],
        ErrorText(v.coherent), ErrorText(v.energy),
        v.reason == FireReason::kHard ? "" : absl::StrFormat("%.3g", v.jump()),
        std::string(FireReasonName(v.reason)), NoteOf(v));
  }
  if (shown < fired.size()) {
    out << "  ... and " << fired.size() - shown << " more (--rows)\n";
  }
}

// Rows of one cause, said once: a batch or padding that differs everywhere.
void WriteShapeCause(const Comparison& c, std::ostream& out) {
  int64_t rows = 0;
  const RowPair* example = nullptr;
  for (size_t i = 0; i < c.divergence.rows.size(); ++i) {
    if ((c.divergence.rows[i].hard & kHardShape) == 0) continue;
    if (rows++ == 0) example = &c.alignment.pairs[i];
  }
  if (rows < 2) return;
  const PairMetrics m =
      ComparePair(c.alignment.a, example->a, c.alignment.b, example->b);
  out << "  shapes differ in " << rows << " pairs, as in "
      << DescribeHard(m, c.alignment.a, example->a, c.alignment.b, example->b)
      << "\n";
}

std::string RangeText(const DetectionLimits::Range& range) {
  // The same to two digits is one number.
  const std::string low = ErrorText(range.low), high = ErrorText(range.high);
  return low == high ? low : absl::StrCat(low, " to ", high);
}

// The dullest sub-operations first: there an error must be largest to be seen.
void WriteLimits(const Comparison& c, const ReportOptions& options,
                 std::ostream& out) {
  const std::vector<DetectionLimits> limits =
      FindDetectionLimits(c.alignment, c.divergence);
  const bool is_table =
      options.limits || (!c.divergence.first && options.rows > 0);
  if (limits.empty() || c.divergence.num_different == 0) return;
  const DetectionLimits& dullest = limits[0];
  if (!is_table) {
    out << "  up to there an error below " << ErrorText(dullest.statistics.high)
        << " would have passed at " << Printable(dullest.template_name)
        << " (--limits)\n";
    return;
  }
  const size_t shown = options.limits
                           ? limits.size()
                           : std::min<size_t>(limits.size(), options.rows);
  size_t width = 13;
  std::vector<std::string> names;
  for (size_t k = 0; k < shown; ++k) {
    names.push_back(Printable(limits[k].template_name));
    width = std::max(width, names[k].size());
  }
  out << absl::StrFormat("\n  %-*s  %6s  %-19s  %-19s  %s\n",
                         static_cast<int>(width), "would be seen", "pairs",
                         "statistics from", "elements from", "largest seen");
  for (size_t k = 0; k < shown; ++k) {
    const DetectionLimits& x = limits[k];
    out << absl::StrFormat(
        "  %-*s  %6d  %-19s  %-19s  %s\n", static_cast<int>(width), names[k],
        x.pairs, RangeText(x.statistics),
        x.elements ? RangeText(*x.elements) : "-",
        ErrorText(std::max(x.worst_statistics, x.worst_elements)));
  }
  if (shown < limits.size()) {
    out << "  ... and " << limits.size() - shown << " more (--limits)\n";
  }
}

void WriteDtypes(const Comparison& c, std::ostream& out) {
  const auto name = [&](uint8_t dtype) {
    const std::string& text = c.names->dtype(dtype);
    return text.empty() ? "unknown" : Printable(text);
  };
  for (const DtypeChange& change : c.divergence.dtype_changes) {
    out << "  " << name(change.left) << " against " << name(change.right)
        << " in " << change.pairs << (change.pairs == 1 ? " pair" : " pairs")
        << ", first at " << Printable(DescribePlace(c, change.first)) << "\n";
  }
}

}  // namespace

std::string Sparkline(const Comparison& c, size_t width) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄",
                                            "▅", "▆", "▇", "█"};
  const Divergence& d = c.divergence;
  // Lines in runs are equal: no error, but depth.
  const uint64_t n =
      c.alignment.NumPaired() - c.alignment.pairs.size() + d.rows.size();
  width = std::min<uint64_t>(width, n);
  std::vector<double> worst(width);
  size_t run = 0;
  uint64_t depth = 0;
  for (size_t i = 0; i < d.rows.size(); ++i, ++depth) {
    for (; run < c.alignment.runs.size() && c.alignment.run_pairs[run] <= i;
         ++run) {
      depth += c.alignment.runs[run].keys.size();
    }
    const RowVerdict& v = d.rows[i];
    double error = std::max<double>(v.coherent, v.energy);
    if (v.hard != 0) error = 1;
    double& cell = worst[depth * width / n];
    cell = std::max(cell, error);
  }
  std::string line;
  for (const double error : worst) {
    // From 1e-7 to 1, about a decade a block; nothing below.
    const double height = error > 0 ? std::log10(error) + 7 : 0;
    line += kBlocks[std::clamp(static_cast<int>(height), 0, 7)];
  }
  return line;
}

void WriteText(const Comparison& c, const ReportOptions& options,
               std::ostream& out) {
  const Divergence& d = c.divergence;
  const char* const mark = !options.color                     ? ""
                           : c.verdict == Verdict::kDiffer    ? "\x1b[31m"
                           : c.verdict == Verdict::kUndecided ? "\x1b[33m"
                                                              : "\x1b[32m";
  out << mark << VerdictName(c.verdict) << (options.color ? "\x1b[0m" : "");
  if (d.first) {
    out << ": first divergence at " << Printable(DescribePlace(c, *d.first));
  }
  out << "\n  " << Printable(Explain(c)) << "\n";
  for (const std::string& trouble : c.trouble) {
    out << "  trouble: " << Printable(trouble) << "\n";
  }
  WriteShapeCause(c, out);
  WriteTable(c, options, out);
  out << "\n  " << c.alignment.NumPaired() << " pairs";
  if (c.is_prefix) out << " in the prefix that was read";
  int counts[6] = {};
  for (const RowPair& pair : c.alignment.pairs) {
    ++counts[static_cast<int>(pair.method)];
  }
  for (int i = 1; i < 6; ++i) {
    if (counts[i] > 0) {
      out << ", " << counts[i] << " by "
          << MatchMethodName(static_cast<MatchMethod>(i));
    }
  }
  out << "; " << c.alignment.unmatched_a.size() << " left and "
      << c.alignment.unmatched_b.size() << " right without counterpart";
  if (const int64_t alone = c.alignment.num_alone_a + c.alignment.num_alone_b;
      alone > 0) {
    out << ", " << alone << " that the map knows to have none";
  }
  out << "\n";
  WriteDtypes(c, out);
  if (!d.rows.empty()) {
    out << "  error over depth (1e-7 to 1): "
        << Sparkline(c, std::max(20, options.columns - 34)) << "\n";
  }
  WriteLimits(c, options, out);
}

}  // namespace firstframe
