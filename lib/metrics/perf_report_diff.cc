// Comparison of two reports.

#include <cmath>

#include "absl/strings/str_format.h"
#include "lib/base/text_width.h"
#include "lib/metrics/perf_report_text.h"

namespace firstframe {

std::vector<PerfDifference> ComparePerf(const PerfReport& left,
                                        const PerfReport& right,
                                        double threshold, double confidence) {
  const auto left_samples = left.Samples();
  const auto right_samples = right.Samples();
  std::vector<PerfDifference> differences;
  for (const auto& [name, values] : left_samples) {
    const auto other = right_samples.find(name);
    if (other == right_samples.end() || values.empty() ||
        other->second.empty()) {
      continue;
    }
    PerfDifference difference;
    difference.name = name;
    difference.left_count = static_cast<int64_t>(values.size());
    difference.right_count = static_cast<int64_t>(other->second.size());
    difference.medians = CompareMedians(values, other->second, confidence);
    const auto& [l, r, ratio, interval] = difference.medians;
    if (ratio) {
      difference.is_regression =
          *ratio > 1 + threshold && (!interval || interval->first > 1);
      difference.is_improvement =
          *ratio < 1 - threshold && (!interval || interval->second < 1);
    }
    differences.push_back(std::move(difference));
  }
  return differences;
}

void WritePerfDifferences(const std::vector<PerfDifference>& differences,
                          double threshold, std::ostream& out) {
  out << "measure                                  left       right    change  "
         " "
         "       interval\n";
  for (const PerfDifference& difference : differences) {
    const MedianRatio& medians = difference.medians;
    out << FitWidth(PrintableText(difference.name), 34)
        << absl::StrFormat(" %10.5g  %10.5g", medians.left, medians.right);
    if (medians.ratio) {
      out << absl::StrFormat(" %+8.1f%%", (*medians.ratio - 1) * 100);
    } else {
      out << "      n/a";
    }
    if (medians.interval) {
      out << absl::StrFormat("  [%+.1f%%, %+.1f%%]",
                             (medians.interval->first - 1) * 100,
                             (medians.interval->second - 1) * 100);
    } else {
      out << absl::StrFormat("  (%d and %d values)", difference.left_count,
                             difference.right_count);
    }
    if (difference.is_regression) out << "  REGRESSION";
    if (difference.is_improvement) out << "  improvement";
    out << '\n';
  }
  out << absl::StrFormat(
      "\nmedians; bootstrap intervals; a regression is over %+.1f%% and surely "
      "over 0\n",
      threshold * 100);
}

void WritePerfDifferencesJson(const std::vector<PerfDifference>& differences,
                              double threshold, JsonWriter& json) {
  json.Key("threshold").Double(threshold);
  json.Key("differences").BeginArray();
  for (const PerfDifference& difference : differences) {
    const MedianRatio& medians = difference.medians;
    json.BeginObject();
    json.Key("name").String(difference.name);
    json.Key("left_count").Int(difference.left_count);
    json.Key("right_count").Int(difference.right_count);
    json.Key("left_median").Double(medians.left);
    json.Key("right_median").Double(medians.right);
    json.Key("ratio").OptionalDouble(medians.ratio);
    json.Key("ratio_low");
    medians.interval ? json.Double(medians.interval->first) : json.Null();
    json.Key("ratio_high");
    medians.interval ? json.Double(medians.interval->second) : json.Null();
    json.Key("regression").Bool(difference.is_regression);
    json.Key("improvement").Bool(difference.is_improvement);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace firstframe
