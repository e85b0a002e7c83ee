#include "lib/activation/compare.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/activation/trace_reader.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr size_t kFirstPrefixBytes = size_t{1} << 20;

void CheckDamage(const TraceTable& table, const CompareOptions& options,
                 Comparison* out) {
  const TraceDamage& d = table.damage;
  std::vector<std::string> parts;
  if (d.torn > 0) {
    parts.push_back(absl::StrCat(
        d.torn, " torn record", d.torn > 1 ? "s" : "", ", the first in line ",
        d.first_torn_line, d.torn_at_end ? ", the last half-written" : ""));
  }
  if (d.foreign > 0) {
    parts.push_back(absl::StrCat(d.foreign, " line", d.foreign > 1 ? "s" : "",
                                 " without a \"module\""));
  }
  if (!parts.empty()) {
    const std::string text =
        absl::StrCat(table.name, ": ", absl::StrJoin(parts, "; "));
    if (options.lenient) {
      out->warnings.push_back(text);
    } else {
      out->trouble.push_back(
          absl::StrCat(text, " (--lenient compares what is left)"));
    }
  }
  if (d.glued > 0) {
    out->warnings.push_back(absl::StrCat(table.name, ": ", d.glued,
                                         " records glued to another's line"));
  }
  if (d.duplicate_keys > 0) {
    out->warnings.push_back(
        absl::StrCat(table.name, ": ", d.duplicate_keys,
                     " records say a key twice; the last one counts"));
  }
}

// Names modules of unmatched rows, most rows first.
std::string SampleOfUnmatched(const TraceSide& side,
                              const std::vector<uint32_t>& rows) {
  absl::flat_hash_map<uint32_t, int64_t> counts;
  for (const uint32_t row : rows) ++counts[side.table.rows[row].key];
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [key, count] : counts) {
    sorted.emplace_back(-count, side.names->key(key).module);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> words;
  for (size_t i = 0; i < sorted.size() && i < 3; ++i) {
    words.push_back(
        absl::StrCat(sorted[i].second, " (", -sorted[i].first, ")"));
  }
  if (sorted.size() > 3) {
    words.push_back(absl::StrCat(sorted.size() - 3, " more names"));
  }
  return absl::StrJoin(words, ", ");
}

void CheckCoverage(const CompareOptions& options, Comparison* out) {
  const Alignment& al = out->alignment;
  if (al.a.table.rows.empty() || al.b.table.rows.empty()) {
    for (const TraceSide* side : {&al.a, &al.b}) {
      if (side->table.rows.empty()) {
        out->trouble.push_back(
            absl::StrCat(side->table.name, ": no records to compare"));
      }
    }
    return;
  }
  if (al.pairs.empty()) {
    out->trouble.push_back(
        "the traces have no module in common (try --map_suggest)");
    return;
  }
  if (out->divergence.num_compared == 0) {
    out->trouble.push_back("no statistic is in both traces");
  }
  const int64_t unmatched =
      static_cast<int64_t>(al.unmatched_a.size() + al.unmatched_b.size());
  if (unmatched > options.max_unmatched && !out->is_prefix) {
    if (!al.unmatched_a.empty()) {
      out->trouble.push_back(
          absl::StrCat(al.unmatched_a.size(), " records missing on the right: ",
                       SampleOfUnmatched(al.a, al.unmatched_a)));
    }
    if (!al.unmatched_b.empty()) {
      out->trouble.push_back(
          absl::StrCat(al.unmatched_b.size(), " records missing on the left: ",
                       SampleOfUnmatched(al.b, al.unmatched_b)));
    }
  }
  const int64_t fuzzy =
      std::count_if(al.pairs.begin(), al.pairs.end(),
                    [](const RowPair& pair) { return IsFuzzy(pair.method); });
  if (fuzzy > 0 && !options.accept_fuzzy) {
    out->trouble.push_back(
        absl::StrCat(fuzzy,
                     " pairs are aligned by order alone; check them with "
                     "--map_suggest, or pass --accept_fuzzy"));
  }
}

void AddFindings(Comparison* out) {
  const Divergence& d = out->divergence;
  for (const CaptureLint& lint : d.lints) {
    out->warnings.push_back(DescribeLint(lint));
  }
  if (d.num_isolated > 0) {
    out->warnings.push_back(
        absl::StrCat(d.num_isolated,
                     " jumps that nothing downstream confirms were left out"));
  }
  if (d.num_both_non_finite > 0) {
    out->warnings.push_back(
        absl::StrCat(d.num_both_non_finite,
                     " pairs are NaN or infinite on both sides; their values "
                     "were not compared"));
  }
  if (d.assumed_rounding > 0) {
    out->warnings.push_back(
        absl::StrCat("records do not give their dtype; taken as ",
                     d.assumed_rounding > 1e-4 ? "bfloat16" : "float32",
                     " (--threshold=fp32|bf16|... says otherwise)"));
  }
}

Verdict VerdictOf(const Comparison& c) {
  if (!c.trouble.empty()) return Verdict::kUndecided;
  const Divergence& d = c.divergence;
  if (d.first) return Verdict::kDiffer;
  return d.num_different == 0 && d.num_both_non_finite == 0
             ? Verdict::kIdentical
             : Verdict::kSame;
}

void ReadUnread(TraceNames* names, Alignment* alignment) {
  ReadUnreadRows(alignment->unread_a, names, &alignment->a.table);
  ReadUnreadRows(alignment->unread_b, names, &alignment->b.table);
}

absl::StatusOr<Comparison> CompareText(const TraceInput& a, const TraceInput& b,
                                       size_t limit,
                                       const CompareOptions& options) {
  Comparison out;
  out.names = std::make_unique<TraceNames>();
  const auto prefix = [&](absl::string_view text) {
    if (text.size() <= limit) return text;
    out.is_prefix = true;
    return text.substr(0, text.rfind('\n', limit) + 1);
  };
  const absl::string_view text_a = prefix(a.text());
  const absl::string_view text_b = prefix(b.text());
  const auto align = [&](EqualLines equal_lines) {
    return AlignTraces(ReadTracePair(text_a, a.name(), text_b, b.name(),
                                     equal_lines, out.names.get()),
                       *out.names, options.align);
  };
  std::optional<EqualLines> way = options.equal_lines;
  for (; way; way = out.alignment.wants) {
    FF_ASSIGN_OR_RETURN(out.alignment, align(*way));
  }
  CheckDamage(out.alignment.a.table, options, &out);
  CheckDamage(out.alignment.b.table, options, &out);
  ReadUnread(out.names.get(), &out.alignment);
  DivergenceOptions divergence = options.divergence;
  divergence.stop_at_first |= options.first_only;
  out.divergence = FindDivergence(out.alignment, divergence);
  for (const std::string& warning : out.alignment.warnings) {
    out.warnings.push_back(warning);
  }
  AddFindings(&out);
  CheckCoverage(options, &out);
  out.verdict = VerdictOf(out);
  return out;
}

}  // namespace

absl::StatusOr<Comparison> CompareTraces(const TraceInput& a,
                                         const TraceInput& b,
                                         const CompareOptions& options) {
  size_t limit = std::max(a.text().size(), b.text().size());
  if (!options.first_only) return CompareText(a, b, limit, options);
  for (size_t bytes = kFirstPrefixBytes;; bytes *= 4) {
    FF_ASSIGN_OR_RETURN(Comparison out,
                        CompareText(a, b, std::min(bytes, limit), options));
    const Divergence& d = out.divergence;
    // Near the end of a prefix a jump may still find its confirmation.
    const bool is_sure = d.first && *d.first + 16 < d.rows.size();
    if (bytes >= limit || is_sure) return out;
  }
}

absl::StatusOr<ControlLevels> ReadControl(const TraceInput& reference,
                                          const TraceInput& control,
                                          const AlignOptions& options) {
  TraceNames names;
  FF_ASSIGN_OR_RETURN(
      Alignment alignment,
      AlignTraces(
          ReadTracePair(reference.text(), reference.name(), control.text(),
                        control.name(), EqualLines::kRows, &names),
          names, options));
  ReadUnread(&names, &alignment);
  if (alignment.pairs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(control.name(), ": nothing in common with ",
                     reference.name(), ", so it is no control"));
  }
  return MeasureControl(alignment);
}

}  // namespace firstframe
