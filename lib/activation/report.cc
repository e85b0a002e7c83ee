#include "lib/activation/report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "lib/activation/pair_metrics.h"
#include "lib/base/json_writer.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// Names may hold anything that JSON can say; a terminal gets valid UTF-8
// without control characters.
std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      length = 1;
      out += "\xEF\xBF\xBD";
    } else if (length == 1 &&
               (static_cast<uint8_t>(text[0]) < ' ' || text[0] == '\x7F')) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string ReasonName(FireReason reason) {
  switch (reason) {
    case FireReason::kNone:
      return "none";
    case FireReason::kHard:
      return "hard";
    case FireReason::kCoherentJump:
      return "coherent";
    case FireReason::kEnergyJump:
      return "energy";
    case FireReason::kCeiling:
      return "ceiling";
    case FireReason::kExact:
      return "exact";
  }
  return "";
}

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
        ReasonName(v.reason), NoteOf(v));
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

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kSame:
      return "same";
    case Verdict::kDiffer:
      return "differ";
    case Verdict::kUndecided:
      return "undecided";
  }
  return "";
}

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
  if (!d.rows.empty()) {
    out << "  error over depth (1e-7 to 1): "
        << Sparkline(c, std::max(20, options.columns - 34)) << "\n";
  }
}

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
  json.Key("channel").String(v.flags & RowVerdict::kByEnergy ? "elements"
                                                             : "statistics");
  json.Key("expected_error").Double(v.expected());
  json.Key("fired").Bool(v.Fires());
  json.Key("reason").String(ReasonName(v.reason));
  json.Key("bits").String(v.flags & RowVerdict::kBitsEqual    ? "equal"
                          : v.flags & RowVerdict::kBitsDiffer ? "differ"
                                                              : "unknown");
  json.Key("confirmed").Bool((v.flags & RowVerdict::kConfirmed) != 0);
  json.Key("isolated").Bool((v.flags & RowVerdict::kIsolated) != 0);
  json.Key("contains_fired").Bool((v.flags & RowVerdict::kFoldedParent) != 0);
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

// GitHub's workflow commands escape these three.
std::string EscapeCommand(absl::string_view text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
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
  json.Key("inputs_differ").Bool(d.inputs_differ);
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
  int left = options.rows;
  for (size_t i = 0; i < d.rows.size(); ++i) {
    if (options.all_rows || (d.rows[i].Fires() && left-- > 0)) {
      WriteRow(c, i, "row", out);
    }
  }
  WriteUnmatched(c.alignment.a, c.alignment.unmatched_a, "left", out);
  WriteUnmatched(c.alignment.b, c.alignment.unmatched_b, "right", out);
}

void WriteGithub(const Comparison& c, std::ostream& out) {
  if (c.divergence.first) {
    out << "::error title=First divergence::" << EscapeCommand(Explain(c))
        << "\n";
  }
  for (const std::string& trouble : c.trouble) {
    out << "::error title=Traces not comparable::" << EscapeCommand(trouble)
        << "\n";
  }
  for (const std::string& warning : c.warnings) {
    out << "::warning title=trace_diff::" << EscapeCommand(warning) << "\n";
  }
  if (c.verdict == Verdict::kSame || c.verdict == Verdict::kIdentical) {
    out << "::notice title=Traces agree::" << EscapeCommand(Explain(c)) << "\n";
  }
}

}  // namespace firstframe
