#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/activation/detection_limits.h"
#include "lib/activation/pair_evidence.h"
#include "lib/activation/pair_metrics.h"
#include "lib/activation/report.h"
#include "lib/activation/report_parts.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

void AddPlace(const Comparison& c, size_t i, JsonWriter* json) {
  const RowPair& pair = c.alignment.pairs[i];
  const TraceRow& a = c.alignment.a.table.rows[pair.a];
  const TraceRow& b = c.alignment.b.table.rows[pair.b];
  const TraceNames::Key& key = c.names->key(a.key);
  json->Key("pair").Uint(c.alignment.PairNumber(i));
  json->Key("module").String(key.module);
  if (b.key != a.key) {
    json->Key("module_right").String(c.names->key(b.key).module);
  }
  json->Key("tensor").String(key.tensor);
  if (a.step == kNoStep) {
    json->Key("step").Null();
  } else {
    json->Key("step").Int(a.step);
  }
  json->Key("occurrence").Uint(a.occurrence);
  json->Key("match").String(MatchMethodName(pair.method));
}

void AddOptional(absl::string_view key, std::optional<double> value,
                 JsonWriter* json) {
  json->Key(key).OptionalDouble(value);
}

// What only some records tell: sketches, samples, histograms.
void AddEvidence(const PairEvidence& e, JsonWriter* json) {
  if (e.relative_error) {
    json->Key("element_error_low").Double(e.relative_error->low);
    json->Key("element_error_high").Double(e.relative_error->high);
    AddOptional("sqnr_db", e.sqnr_db, json);
    AddOptional("rel_diff", e.rel_diff, json);
    AddOptional("one_minus_cosine", e.one_minus_cosine, json);
  }
  if (e.samples > 0) {
    json->Key("samples").Int(e.samples);
    json->Key("samples_equal").Int(e.samples_equal);
    json->Key("samples_within_ulp").Int(e.samples_within_ulp);
    json->Key("samples_of_other_sign").Int(e.samples_of_other_sign);
    AddOptional("sample_median_error", e.sample_median, json);
  }
  if (e.exponents_moved) {
    json->Key("exponents_moved_share").Double(*e.exponents_moved);
  }
  if (e.zeros_left && e.zeros_right) {
    json->Key("zeros_left_share").Double(*e.zeros_left);
    json->Key("zeros_right_share").Double(*e.zeros_right);
  }
}

void WriteRow(const Comparison& c, size_t i, absl::string_view kind,
              std::ostream& out) {
  const RowVerdict& v = c.divergence.rows[i];
  const RowPair& pair = c.alignment.pairs[i];
  const PairMetrics m =
      ComparePair(c.alignment.a, pair.a, c.alignment.b, pair.b);
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String(kind);
  AddPlace(c, i, &json);
  json.Key("statistics_error").Double(v.coherent);
  json.Key("element_error")
      .OptionalDouble(v.energy < 0 ? std::nullopt
                                   : std::optional<double>(v.energy));
  json.Key("projected_error")
      .OptionalDouble(m.projected < 0 ? std::nullopt
                                      : std::optional<double>(m.projected));
  json.Key("jump").Double(v.jump());
  json.Key("channel").String(v.Has(RowVerdict::kByEnergy) ? "elements"
                                                          : "statistics");
  json.Key("expected_error").Double(v.expected());
  AddOptional("statistics_limit",
              DetectionLimit(v, kCoherent, c.divergence.options), &json);
  AddOptional("element_limit", DetectionLimit(v, kEnergy, c.divergence.options),
              &json);
  json.Key("fired").Bool(v.Fires());
  json.Key("reason").String(FireReasonName(v.reason));
  json.Key("bits").String(v.Has(RowVerdict::kBitsEqual)    ? "equal"
                          : v.Has(RowVerdict::kBitsDiffer) ? "differ"
                                                           : "unknown");
  json.Key("confirmed").Bool(v.Has(RowVerdict::kConfirmed));
  json.Key("isolated").Bool(v.Has(RowVerdict::kIsolated));
  json.Key("contains_fired").Bool(v.Has(RowVerdict::kFoldedParent));
  json.Key("negligible").Bool(v.Has(RowVerdict::kNegligible));
  if (c.divergence.has_inputs) {
    json.Key("is_input").Bool(v.Has(RowVerdict::kIsInput));
    json.Key("inherited").Bool(v.Has(RowVerdict::kInherited));
    AddOptional("added_error", AddedError(c, i), &json);
  }
  AddEvidence(EvidenceOf(c.alignment.a, pair.a, c.alignment.b, pair.b), &json);
  if (m.hard != 0) {
    json.Key("difference")
        .String(DescribeHard(m, c.alignment.a, pair.a, c.alignment.b, pair.b));
  }
  json.EndObject();
  out << line << "\n";
}

void WriteMessages(const std::vector<std::string>& messages,
                   absl::string_view kind, std::ostream& out) {
  for (const std::string& message : messages) {
    std::string line;
    JsonWriter json(&line);
    json.BeginObject();
    json.Key("kind").String(kind);
    json.Key("message").String(message);
    json.EndObject();
    out << line << "\n";
  }
}

void WriteUnmatched(const TraceSide& side, const std::vector<uint32_t>& rows,
                    absl::string_view name, std::ostream& out) {
  for (const uint32_t row : rows) {
    const TraceRow& r = side.table.rows[row];
    std::string line;
    JsonWriter json(&line);
    json.BeginObject();
    json.Key("kind").String("unmatched");
    json.Key("side").String(name);
    json.Key("module").String(side.names->key(r.key).module);
    json.Key("tensor").String(side.names->key(r.key).tensor);
    if (r.step == kNoStep) {
      json.Key("step").Null();
    } else {
      json.Key("step").Int(r.step);
    }
    json.Key("occurrence").Uint(r.occurrence);
    json.EndObject();
    out << line << "\n";
  }
}

void WriteLimits(const Comparison& c, std::ostream& out) {
  for (const DetectionLimits& x :
       FindDetectionLimits(c.alignment, c.divergence)) {
    std::string line;
    JsonWriter json(&line);
    json.BeginObject();
    json.Key("kind").String("limit");
    json.Key("sub_operation").String(x.template_name);
    json.Key("pairs").Int(x.pairs);
    json.Key("fired").Int(x.fired);
    json.Key("statistics_limit_low").Double(x.statistics.low);
    json.Key("statistics_limit_high").Double(x.statistics.high);
    if (x.elements) {
      json.Key("element_limit_low").Double(x.elements->low);
      json.Key("element_limit_high").Double(x.elements->high);
    }
    json.Key("worst_statistics_error").Double(x.worst_statistics);
    AddOptional("worst_element_error",
                x.worst_elements < 0 ? std::nullopt
                                     : std::optional<double>(x.worst_elements),
                &json);
    json.EndObject();
    out << line << "\n";
  }
}

void WriteDtypes(const Comparison& c, std::ostream& out) {
  for (const DtypeChange& change : c.divergence.dtype_changes) {
    std::string line;
    JsonWriter json(&line);
    json.BeginObject();
    json.Key("kind").String("dtype");
    json.Key("left").String(c.names->dtype(change.left));
    json.Key("right").String(c.names->dtype(change.right));
    json.Key("pairs").Int(change.pairs);
    json.Key("first").String(DescribePlace(c, change.first));
    json.EndObject();
    out << line << "\n";
  }
}

}  // namespace

void WriteJsonl(const Comparison& c, const ReportOptions& options,
                std::ostream& out) {
  const Divergence& d = c.divergence;
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("summary");
  json.Key("schema").String("firstframe.trace_diff/1");
  json.Key("left").String(c.alignment.a.table.name);
  json.Key("right").String(c.alignment.b.table.name);
  json.Key("verdict").String(VerdictName(c.verdict));
  json.Key("explanation").String(Explain(c));
  json.Key("pairs").Uint(c.alignment.NumPaired());
  json.Key("unmatched_left").Uint(c.alignment.unmatched_a.size());
  json.Key("unmatched_right").Uint(c.alignment.unmatched_b.size());
  json.Key("alone_left").Int(c.alignment.num_alone_a);
  json.Key("alone_right").Int(c.alignment.num_alone_b);
  json.Key("different").Int(d.num_different);
  json.Key("fired").Int(d.num_fired);
  json.Key("isolated").Int(d.num_isolated);
  json.Key("inherited").Int(d.num_inherited);
  json.Key("inputs_differ").Bool(d.inputs_differ);
  json.Key("first_bit_difference");
  if (d.first_bit_difference) {
    json.String(DescribePlace(c, *d.first_bit_difference));
  } else {
    json.Null();
  }
  json.Key("worst_statistics_error").Double(d.worst_coherent);
  json.Key("worst_element_error")
      .OptionalDouble(d.worst_energy < 0
                          ? std::nullopt
                          : std::optional<double>(d.worst_energy));
  for (const auto& [name, side] :
       {std::pair("left", &c.alignment.a), {"right", &c.alignment.b}}) {
    const TraceDamage& damage = side->table.damage;
    json.Key(absl::StrCat(name, "_lines")).Int(side->table.num_lines);
    json.Key(absl::StrCat(name, "_torn")).Int(damage.torn);
    json.Key(absl::StrCat(name, "_glued")).Int(damage.glued);
    json.Key(absl::StrCat(name, "_foreign")).Int(damage.foreign);
    json.Key(absl::StrCat(name, "_duplicate_keys")).Int(damage.duplicate_keys);
  }
  json.EndObject();
  out << line << "\n";
  if (d.first) WriteRow(c, *d.first, "divergence", out);
  WriteMessages(c.trouble, "trouble", out);
  WriteMessages(c.warnings, "warning", out);
  WriteDtypes(c, out);
  WriteLimits(c, out);
  int left = options.rows;
  for (size_t i = 0; i < d.rows.size(); ++i) {
    if (options.all_rows || (d.rows[i].Fires() && left-- > 0)) {
      WriteRow(c, i, "row", out);
    }
  }
  WriteUnmatched(c.alignment.a, c.alignment.unmatched_a, "left", out);
  WriteUnmatched(c.alignment.b, c.alignment.unmatched_b, "right", out);
}

}  // namespace firstframe
