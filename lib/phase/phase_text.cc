#include "lib/phase/phase_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text_width.h"
#include "lib/phase/phase_summary.h"
#include "lib/phase/phase_tree.h"

namespace firstframe {
namespace {

constexpr absl::string_view kRed = "\x1b[31m";
constexpr absl::string_view kDim = "\x1b[2m";
constexpr absl::string_view kBold = "\x1b[1m";
constexpr absl::string_view kReset = "\x1b[0m";
// One colour a depth, of those readable on dark and light alike.
constexpr absl::string_view kBarColours[] = {"\x1b[34m", "\x1b[36m", "\x1b[35m",
                                             "\x1b[32m"};
constexpr absl::string_view kEighths[] = {"",
                                          "\xE2\x96\x8F",
                                          "\xE2\x96\x8E",
                                          "\xE2\x96\x8D",
                                          "\xE2\x96\x8C",
                                          "\xE2\x96\x8B",
                                          "\xE2\x96\x8A",
                                          "\xE2\x96\x89"};
constexpr absl::string_view kFullBlock = "\xE2\x96\x88";

constexpr size_t kNumberColumns = 11 + 11 + 8;  // start, time, share
constexpr size_t kMinBarWidth = 12;
constexpr size_t kMinNameWidth = 16;

struct Row {
  std::string tree;   // the lines of the tree, before the name
  std::string name;   // printable
  std::string error;  // printable
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int depth = 0;
  bool is_gap = false;
  bool is_lane = false;  // a heading
  bool is_error = false;
};

class Waterfall {
 public:
  Waterfall(const PhaseReport& report, const PhaseTextOptions& options,
            std::ostream& out)
      : report_(report),
        options_(options),
        out_(out),
        tree_(BuildPhaseTree(report)),
        total_ns_(std::max<int64_t>(report.recording_duration_ns, 1)) {}

  void Write() {
    const std::vector<Row> rows = Rows();
    size_t widest = 5;
    for (const Row& row : rows) {
      widest =
          std::max(widest, DisplayWidth(row.tree) + DisplayWidth(row.name));
    }
    const size_t room = options_.width > kNumberColumns + 2
                            ? options_.width - kNumberColumns - 2
                            : 0;
    // Names take what they need, up to three fifths; bars take the rest.
    name_width_ = std::max(std::min(widest, room * 3 / 5), kMinNameWidth);
    bar_width_ =
        room > name_width_ + kMinBarWidth ? room - name_width_ : kMinBarWidth;
    WriteHeader();
    for (const Row& row : rows) WriteRow(row);
    WriteTotal();
  }

 private:
  std::vector<Row> Rows() {
    std::vector<Row> rows;
    std::vector<bool> last_at;   // per depth, whether the ancestor was the last
    std::vector<int32_t> lanes;  // per depth, the ancestor's
    int32_t lane = 0;            // of the roots
    std::optional<Row> lane_row;
    const std::vector<char> shown = Shown();
    auto gap = tree_.gaps.begin();
    const auto add_gaps_before = [&](int64_t start_ns) {
      for (; gap != tree_.gaps.end() && gap->start_offset_ns < start_ns;
           ++gap) {
        if (gap->duration_ns < options_.min_gap_share * total_ns_) continue;
        rows.push_back({.name = "(gap)",
                        .start_ns = gap->start_offset_ns,
                        .duration_ns = gap->duration_ns,
                        .is_gap = true});
      }
    };
    for (size_t i = 0; i < tree_.nodes.size(); ++i) {
      const PhaseNode& node = tree_.nodes[i];
      const PhaseRecord& phase = report_.phases[node.index];
      if (node.depth == 0 && phase.lane != lane) {
        add_gaps_before(report_.recording_duration_ns + 1);
        lane = phase.lane;
        lane_row = LaneRow(lane);
      }
      if (node.depth == 0) add_gaps_before(phase.start_offset_ns + 1);
      last_at.resize(node.depth + 1);
      last_at[node.depth] = node.is_last;
      if (!shown[i]) {
        ++hidden_;
        continue;
      }
      if (lane_row) rows.push_back(*std::exchange(lane_row, std::nullopt));
      Row row = MakeRow(node, phase);
      row.tree = TreeLines(node, last_at);
      // A thread that works for its parent's is named; below it goes without
      // saying.
      lanes.resize(node.depth + 1);
      lanes[node.depth] = phase.lane;
      if (node.depth > 0 && lanes[node.depth - 1] != phase.lane) {
        absl::StrAppend(&row.name, " [", LaneName(phase.lane), "]");
      }
      rows.push_back(std::move(row));
    }
    add_gaps_before(report_.recording_duration_ns + 1);
    return rows;
  }

  static Row MakeRow(const PhaseNode& node, const PhaseRecord& phase) {
    return {.name = PrintableText(phase.name),
            .error = PrintableText(phase.error),
            .start_ns = phase.start_offset_ns,
            .duration_ns = phase.duration_ns,
            .depth = node.depth,
            .is_error = phase.status == PhaseStatus::kError};
  }

  // `last_at`: per depth, whether the node's ancestor there is its parent's
  // last.
  std::string TreeLines(const PhaseNode& node,
                        const std::vector<bool>& last_at) const {
    std::string lines;
    // Beyond eight levels the lines would leave no room for names.
    for (int depth = std::max(1, node.depth - 8); depth < node.depth; ++depth) {
      lines += last_at[depth]     ? "   "
               : options_.unicode ? "\xE2\x94\x82  "
                                  : "|  ";
    }
    if (node.depth > 0) {
      lines += options_.unicode ? (node.is_last ? "\xE2\x94\x94\xE2\x94\x80 "
                                                : "\xE2\x94\x9C\xE2\x94\x80 ")
                                : (node.is_last ? "`- " : "|- ");
    }
    return lines;
  }

  std::string LaneName(int32_t lane) const {
    return static_cast<size_t>(lane) < report_.lanes.size()
               ? PrintableText(report_.lanes[lane].name)
               : absl::StrCat("lane ", lane);
  }

  // A heading for the roots of another lane.
  std::optional<Row> LaneRow(int32_t lane) const {
    return Row{.name = absl::StrCat("[", LaneName(lane), "]"), .is_lane = true};
  }

  // Per node of the tree: long enough, failed, or above one that is.
  std::vector<char> Shown() const {
    std::vector<char> shown(tree_.nodes.size());
    int needed_above = 0;  // a shown node of this depth needs its ancestors
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      const PhaseNode& node = tree_.nodes[i];
      const PhaseRecord& phase = report_.phases[node.index];
      shown[i] = node.depth < needed_above ||
                 (phase.duration_ns >= options_.min_share * total_ns_ &&
                  node.depth <= options_.max_depth) ||
                 phase.status == PhaseStatus::kError;
      if (shown[i]) needed_above = node.depth;
    }
    return shown;
  }

  std::string Paint(absl::string_view colour, absl::string_view text) const {
    if (!options_.colour || text.empty()) return std::string(text);
    return absl::StrCat(colour, text, kReset);
  }

  // Milliseconds with as many decimals as the recording's length leaves sense
  // in.
  std::string Milliseconds(int64_t ns) const {
    const int decimals = total_ns_ < 1'000'000'000     ? 3
                         : total_ns_ < 100'000'000'000 ? 1
                                                       : 0;
    return absl::StrFormat("%.*f", decimals, ns / 1e6);
  }

  std::string Bar(const Row& row) const {
    const double cells_per_ns = static_cast<double>(bar_width_) / total_ns_;
    const double start = std::clamp(row.start_ns * cells_per_ns, 0.0,
                                    static_cast<double>(bar_width_));
    const double end =
        std::clamp((row.start_ns + row.duration_ns) * cells_per_ns, start,
                   static_cast<double>(bar_width_));
    const size_t first = std::min(static_cast<size_t>(start), bar_width_ - 1);
    std::string bar;
    if (row.is_gap) {
      const size_t cells = std::max<size_t>(std::lround(end) - first, 1);
      for (size_t i = 0; i < std::min(cells, bar_width_ - first); ++i) {
        bar += options_.unicode ? "\xC2\xB7" : ".";
      }
    } else if (!options_.unicode) {
      const size_t cells = std::max<size_t>(std::lround(end - first), 1);
      bar = std::string(std::min(cells, bar_width_ - first),
                        row.is_error ? 'x' : '#');
    } else {
      // Eighths from the first cell's left edge; at least one, to be seen. What
      // fits into a cell is drawn with its length, wherever in it it lies.
      const double length = end - start < 1 ? end - start : end - first;
      const size_t eighths = std::clamp<size_t>(std::lround(length * 8), 1,
                                                (bar_width_ - first) * 8);
      for (size_t i = 0; i < eighths / 8; ++i)
        absl::StrAppend(&bar, kFullBlock);
      absl::StrAppend(&bar, kEighths[eighths % 8]);
    }
    const absl::string_view colour =
        row.is_gap     ? kDim
        : row.is_error ? kRed
                       : kBarColours[row.depth % std::size(kBarColours)];
    return absl::StrCat(std::string(first, ' '), Paint(colour, bar));
  }

  void WriteHeader() {
    const std::string total = Milliseconds(report_.recording_duration_ns);
    std::string axis = "0";
    if (bar_width_ > total.size() + 2) {
      axis += std::string(bar_width_ - total.size() - 1, ' ') + total;
    }
    out_ << Paint(kDim, absl::StrCat(FitWidth("phase", name_width_),
                                     absl::StrFormat("%11s%11s%8s  ",
                                                     "start ms", "ms", "share"),
                                     axis))
         << '\n';
  }

  void WriteRow(const Row& row) {
    if (row.is_lane) {
      out_ << Paint(kDim, row.name) << '\n';
      return;
    }
    const std::string ellipsis = options_.unicode ? "\xE2\x80\xA6" : "~";
    const size_t tree_width = std::min(DisplayWidth(row.tree), name_width_ - 1);
    const std::string name =
        FitWidth(row.name, name_width_ - tree_width, ellipsis);
    const absl::string_view colour = row.is_error     ? kRed
                                     : row.is_gap     ? kDim
                                     : row.depth == 0 ? kBold
                                                      : "";
    out_ << Paint(kDim, row.tree)
         << (colour.empty() ? name : Paint(colour, name));
    const double share =
        100.0 * static_cast<double>(row.duration_ns) / total_ns_;
    out_ << absl::StrFormat("%11s%11s%7.1f%%  ", Milliseconds(row.start_ns),
                            Milliseconds(row.duration_ns), share)
         << Bar(row) << '\n';
    if (row.is_error) {
      out_ << std::string(DisplayWidth(row.tree) + 2, ' ')
           << Paint(kRed,
                    absl::StrCat(options_.unicode ? "\xE2\x9C\x97 " : "! ",
                                 "error: ", row.error))
           << '\n';
    }
  }

  void WriteTotal() {
    int64_t unnamed_ns = 0;
    for (const PhaseGap& gap : tree_.gaps) unnamed_ns += gap.duration_ns;
    const int64_t named_ns = report_.recording_duration_ns - unnamed_ns;
    out_ << absl::StrFormat(
        "total %s ms, of which phases name %s ms (%.1f%%)\n",
        Milliseconds(report_.recording_duration_ns), Milliseconds(named_ns),
        100.0 * static_cast<double>(named_ns) / total_ns_);
    if (hidden_ > 0) {
      out_ << absl::StrFormat("%d phases are not shown: shorter than %g%%",
                              hidden_, 100 * options_.min_share);
      if (options_.max_depth < 1000) out_ << ", or deep in others";
      out_ << '\n';
    }
  }

  const PhaseReport& report_;
  const PhaseTextOptions& options_;
  std::ostream& out_;
  const PhaseTree tree_;
  const int64_t total_ns_;
  size_t name_width_ = 0;
  size_t bar_width_ = 0;
  int hidden_ = 0;
};

}  // namespace

void WritePhaseText(const PhaseReport& report, const PhaseTextOptions& options,
                    std::ostream& out) {
  Waterfall(report, options, out).Write();
}

void WritePhaseSummaryText(absl::Span<const PhaseReport> runs,
                           const PhaseTextOptions& options, std::ostream& out) {
  constexpr size_t kColumns = 3 * 12 + 6;
  const PhaseSummary summary = SummarizePhases(runs);
  const size_t name_width = std::max(
      options.width > kColumns ? options.width - kColumns : 0, kMinNameWidth);
  const auto row = [&](const std::string& name,
                       const DurationStatistics& duration) {
    out << FitWidth(name, name_width, options.unicode ? "\xE2\x80\xA6" : "~")
        << absl::StrFormat("%12.1f%12.1f%12.1f%6d\n", duration.min_ns / 1e6,
                           duration.median_ns / 1e6, duration.p95_ns / 1e6,
                           duration.samples_ns.size());
  };
  out << FitWidth(absl::StrCat("over ", runs.size(), " runs"), name_width)
      << absl::StrFormat("%12s%12s%12s%6s\n", "min ms", "median ms", "p95 ms",
                         "runs");
  for (const PhaseStatistics& phase : summary.phases) {
    if (phase.duration.median_ns <
        options.min_share * summary.recording.median_ns) {
      continue;
    }
    row(absl::StrCat(std::string(2 * std::min(phase.depth, 12), ' '),
                     PrintableText(phase.name)),
        phase.duration);
  }
  row("total", summary.recording);
}

}  // namespace firstframe
