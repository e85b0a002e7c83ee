#include "lib/trace/trace_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

struct Side {
  double value_ns = 0;
  int64_t count = 0;
  double error_ns = -1;  // standard error; negative: not known
};

using Sides = std::map<std::string, std::pair<Side, Side>>;

Side MedianSide(const RegionSummary& region) {
  Side side = {.value_ns = region.p50_ns, .count = region.count};
  if (region.count >= 3) {
    side.error_ns = 1.2533 * 1.4826 * region.mad_ns /
                    std::sqrt(static_cast<double>(region.count));
  }
  return side;
}

// A region's device time per entry: one number a trace, without a spread.
Side BusySide(const RegionSummary& region) {
  return {.value_ns = region.count == 0 ? 0
                                        : static_cast<double>(region.busy_ns) /
                                              static_cast<double>(region.count),
          .count = region.count};
}

// Rows of one kernel name, pooled: between-row differences count as spread.
struct Pool {
  int64_t count = 0;
  double sum = 0;
  double squares = 0;  // about zero, scaled down below
};

Sides KernelSides(const TraceSummary& a, const TraceSummary& b,
                  double min_share) {
  std::map<std::string, std::pair<Pool, Pool>> pools;
  double totals[2] = {0, 0};
  for (int which = 0; which < 2; ++which) {
    for (const GpuWorkRow& row : (which == 0 ? a : b).work) {
      auto& pair = pools[row.name];
      Pool& pool = which == 0 ? pair.first : pair.second;
      const auto n = static_cast<double>(row.count);
      const double mean = static_cast<double>(row.total_ns) / n;
      pool.count += row.count;
      pool.sum += static_cast<double>(row.total_ns);
      pool.squares +=
          (n - 1) * row.deviation_ns * row.deviation_ns + n * mean * mean;
      totals[which] += static_cast<double>(row.total_ns);
    }
  }
  const auto side = [](const Pool& pool) {
    Side side = {.value_ns = 0, .count = pool.count};
    if (pool.count == 0) return side;
    const auto n = static_cast<double>(pool.count);
    side.value_ns = pool.sum / n;
    if (pool.count >= 3) {
      const double variance = std::max(
          0.0, (pool.squares - n * side.value_ns * side.value_ns) / (n - 1));
      side.error_ns = std::sqrt(variance / n);
    }
    return side;
  };
  Sides sides;
  for (const auto& [name, pair] : pools) {
    if (pair.first.sum < min_share * totals[0] &&
        pair.second.sum < min_share * totals[1]) {
      continue;
    }
    sides[name] = {side(pair.first), side(pair.second)};
  }
  return sides;
}

DiffRow Compare(const std::string& what, const std::string& name, const Side& a,
                const Side& b, double threshold) {
  DiffRow row = {.what = what,
                 .name = name,
                 .a_ns = a.value_ns,
                 .b_ns = b.value_ns,
                 .a_count = a.count,
                 .b_count = b.count};
  if (a.count == 0 || b.count == 0) {
    row.verdict = a.count == 0 ? DiffVerdict::kOnlyInB : DiffVerdict::kOnlyInA;
    return row;
  }
  const double change = std::abs(b.value_ns - a.value_ns);
  if (a.error_ns >= 0 && b.error_ns >= 0) {
    row.noise_ns = 3 * std::hypot(a.error_ns, b.error_ns);
  }
  if (change <= threshold * a.value_ns) {
    row.verdict = DiffVerdict::kSame;
  } else if (row.noise_ns < 0) {
    row.verdict = DiffVerdict::kUnknown;
  } else if (change <= row.noise_ns) {
    row.verdict = DiffVerdict::kSame;
  } else {
    row.verdict =
        b.value_ns < a.value_ns ? DiffVerdict::kFaster : DiffVerdict::kSlower;
  }
  return row;
}

void AppendRows(const std::string& what, const Sides& sides, double threshold,
                std::vector<DiffRow>* rows) {
  std::vector<DiffRow> compared;
  for (const auto& [name, pair] : sides) {
    compared.push_back(Compare(what, name, pair.first, pair.second, threshold));
  }
  const auto weight = [](const DiffRow& row) {
    return std::abs(row.b_ns * static_cast<double>(row.b_count) -
                    row.a_ns * static_cast<double>(row.a_count));
  };
  std::stable_sort(compared.begin(), compared.end(),
                   [&](const DiffRow& a, const DiffRow& b) {
                     return weight(a) > weight(b);
                   });
  std::move(compared.begin(), compared.end(), std::back_inserter(*rows));
}

}  // namespace

std::vector<DiffRow> DiffTraces(const TraceSummary& a, const TraceSummary& b,
                                const TraceDiffOptions& options) {
  std::vector<DiffRow> rows;
  Sides host, busy;
  for (const RegionSummary& region : a.regions) {
    host[region.name].first = MedianSide(region);
    busy[region.name].first = BusySide(region);
  }
  for (const RegionSummary& region : b.regions) {
    host[region.name].second = MedianSide(region);
    busy[region.name].second = BusySide(region);
  }
  AppendRows("region", host, options.threshold, &rows);
  AppendRows("region_gpu", busy, options.threshold, &rows);
  AppendRows("kernel", KernelSides(a, b, options.min_share), options.threshold,
             &rows);
  return rows;
}

bool Differs(const std::vector<DiffRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const DiffRow& row) {
    return row.verdict != DiffVerdict::kSame &&
           row.verdict != DiffVerdict::kUnknown;
  });
}

const char* DiffVerdictName(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kSame:
      return "same";
    case DiffVerdict::kFaster:
      return "faster";
    case DiffVerdict::kSlower:
      return "slower";
    case DiffVerdict::kOnlyInA:
      return "only_in_a";
    case DiffVerdict::kOnlyInB:
      return "only_in_b";
    case DiffVerdict::kUnknown:
      return "unknown";
  }
  return "unknown";
}

void WriteDiffText(const std::vector<DiffRow>& rows, std::ostream& out) {
  out << absl::StreamFormat("%-10s %12s %12s %9s %12s  %-9s %s\n", "what",
                            "A us", "B us", "change", "noise us", "verdict",
                            "name");
  for (const DiffRow& row : rows) {
    out << absl::StreamFormat("%-10s %12.3f %12.3f ", row.what, row.a_ns * 1e-3,
                              row.b_ns * 1e-3);
    if (row.a_count > 0 && row.b_count > 0) {
      out << absl::StreamFormat("%+8.2f%% ", 100 * row.change());
    } else {
      out << "        - ";
    }
    if (row.noise_ns >= 0) {
      out << absl::StreamFormat("%12.3f", row.noise_ns * 1e-3);
    } else {
      out << "           -";
    }
    out << absl::StreamFormat("  %-9s %s\n", DiffVerdictName(row.verdict),
                              row.name);
  }
}

std::string DiffJson(const TraceSummary& a, const TraceSummary& b,
                     const std::vector<DiffRow>& rows) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginJsonDocument("trace_report", 1, json, "trace_report_diff");
  json.Key("a").String(a.file.path);
  json.Key("b").String(b.file.path);
  json.Key("differs").Bool(Differs(rows));
  json.Key("rows").BeginArray();
  for (const DiffRow& row : rows) {
    json.BeginObject();
    json.Key("what").String(row.what);
    json.Key("name").String(row.name);
    json.Key("a_ns").Double(row.a_ns);
    json.Key("b_ns").Double(row.b_ns);
    json.Key("a_count").Int(row.a_count);
    json.Key("b_count").Int(row.b_count);
    json.Key("noise_ns");
    if (row.noise_ns < 0) {
      json.Null();
    } else {
      json.Double(row.noise_ns);
    }
    json.Key("verdict").String(DiffVerdictName(row.verdict));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  text += "\n";
  return text;
}

}  // namespace firstframe
