#include "lib/activation/align.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "lib/activation/align_census.h"
#include "lib/activation/align_fuzzy.h"
#include "lib/activation/align_merge.h"
#include "lib/activation/align_names.h"
#include "lib/activation/align_select.h"
#include "lib/activation/module_name.h"
#include "lib/base/huge_pages.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFu;

// Everything that decides whether two records are the same thing.
struct Place {
  uint32_t entity;
  int32_t rank;
  int32_t step;
  uint32_t occurrence;
  auto operator<=>(const Place&) const = default;
};

class Aligner {
 public:
  Aligner(TracePair traces, const TraceNames& names,
          const AlignOptions& options)
      : names_(names), options_(options) {
    out_.a.table = std::move(traces.a);
    out_.b.table = std::move(traces.b);
    out_.runs = std::move(traces.runs);
    has_unread_ = traces.has_unread;
    out_.a.names = out_.b.names = &names;
  }

  absl::StatusOr<Alignment> Run() {
    if (!TakesRuns()) return Wants(EqualLines::kRows);
    FF_RETURN_IF_ERROR(
        SelectRuns(options_, &out_.a.table, &out_.b.table, &out_.warnings));
    keys_ = NameKeys(names_, out_, options_);
    out_.entity_a = InternEntities(keys_.a);
    out_.entity_b = InternEntities(keys_.b);
    out_.num_alone_a = RemoveAlone(keys_.a, &out_.a.table);
    out_.num_alone_b = RemoveAlone(keys_.b, &out_.b.table);
    if (has_unread_ && (HasParts(keys_.a) || HasParts(keys_.b))) {
      return Wants(EqualLines::kParsed);
    }
    MergeMappedParts(keys_.a, out_.entity_a, &out_.a);
    MergeMappedParts(keys_.b, out_.entity_b, &out_.b);
    if (options_.merge_ranks) {
      MergeRanks(out_.entity_a, &out_.a);
      MergeRanks(out_.entity_b, &out_.b);
    }
    const CensusPair census = CountNames(out_, names_.num_keys());
    const CallMerge merge = PlanMerge(census, out_);
    if (merge.any() && has_unread_) return Wants(EqualLines::kParsed);
    flat_ = census.a.has_steps != census.b.has_steps;
    if (flat_ && !out_.runs.empty()) return Wants(EqualLines::kRows);
    MergeCalls(merge, &out_);
    if (!merge.any() && !DropEarlierRuns(census, &out_)) {
      return Wants(EqualLines::kRows);
    }
    if (!NumberOccurrences()) return Wants(EqualLines::kRows);
    MatchAll();
    // No merging takes the last record of a name away.
    FirstRecordPair first = {
        FirstRecords(out_.a, out_.entity_a, census.a.num_names),
        FirstRecords(out_.b, out_.entity_b, census.b.num_names)};
    if (MatchByOrder(names_, &first, &out_)) {
      aliases_done_ = true;
      MatchAll();
    }
    SuggestBySignature(names_, first, &out_);
    WarnOfShift(names_, first, &out_);
    return std::move(out_);
  }

 private:
  bool TakesRuns() const {
    return out_.runs.empty() ||
           (options_.map_a == nullptr && options_.map_b == nullptr &&
            options_.preset == nullptr && !options_.merge_ranks &&
            out_.a.table.segments.size() == 1 &&
            out_.b.table.segments.size() == 1);
  }

  static Alignment Wants(EqualLines way) {
    Alignment nothing;
    nothing.wants = way;
    return nothing;
  }

  std::vector<uint32_t> InternEntities(const std::vector<NamedKey>& keys) {
    std::vector<uint32_t> entity_of(keys.size());
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const auto [it, is_new] = entity_ids_.try_emplace(
          absl::StrCat(keys[i].module, "\n", keys[i].tensor),
          static_cast<uint32_t>(out_.entities.size()));
      entity_of[i] = it->second;
      if (!is_new) continue;
      const std::string pattern =
          absl::StrCat(ModuleTemplate(keys[i].module), " ", keys[i].tensor);
      const auto [t, is_new_template] = template_ids_.try_emplace(
          pattern, static_cast<uint32_t>(out_.templates.size()));
      if (is_new_template) out_.templates.push_back(pattern);
      out_.entities.push_back(
          {names_.key(i).module, names_.key(i).tensor, t->second});
    }
    return entity_of;
  }

  // Steps never fall back within a segment, but rows without one may come in
  // between.
  struct LastPlace {
    int32_t step = kNoStep;
    uint32_t count = 0;
    uint32_t count_without_step = 0;

    uint32_t Next(int32_t now) {
      if (now == kNoStep) return count_without_step++;
      if (step != now) {
        step = now;
        count = 0;
      }
      return count++;
    }
  };

  // A row's number among those of its entity, rank and step (of its entity and
  // rank alone when one side has no steps). False when the two sides count the
  // lines of a run differently.
  bool NumberOccurrences() {
    std::vector<LastPlace> last_a(out_.entities.size() *
                                  out_.a.table.segments.size());
    std::vector<LastPlace> last_b(out_.entities.size() *
                                  out_.b.table.segments.size());
    size_t begin_a = 0, begin_b = 0;
    for (const EqualRun& run : out_.runs) {
      NumberRows(begin_a, run.row_a, out_.entity_a, &out_.a.table, &last_a);
      NumberRows(begin_b, run.row_b, out_.entity_b, &out_.b.table, &last_b);
      begin_a = run.row_a;
      begin_b = run.row_b;
      bool agree = true;
      run.ForEachLine([&](uint32_t key, int32_t step) {
        agree &= last_a[out_.entity_a[key]].Next(step) ==
                 last_b[out_.entity_b[key]].Next(step);
      });
      if (!agree) return false;
    }
    NumberRows(begin_a, out_.a.table.rows.size(), out_.entity_a, &out_.a.table,
               &last_a);
    NumberRows(begin_b, out_.b.table.rows.size(), out_.entity_b, &out_.b.table,
               &last_b);
    return true;
  }

  void NumberRows(size_t begin, size_t end,
                  const std::vector<uint32_t>& entity_of, TraceTable* table,
                  std::vector<LastPlace>* last) const {
    const size_t num_segments = table->segments.size();
    for (size_t i = begin; i < end; ++i) {
      TraceRow& row = table->rows[i];
      row.occurrence =
          (*last)[entity_of[row.key] * num_segments + row.segment].Next(
              flat_ ? kNoStep : row.step);
    }
  }

  Place PlaceOf(const TraceSide& side, const std::vector<uint32_t>& entity_of,
                uint32_t i) const {
    const TraceRow& row = side.table.rows[i];
    return {entity_of[row.key], side.table.segments[row.segment].rank,
            flat_ ? kNoStep : row.step, row.occurrence};
  }

  MatchMethod MethodOf(uint32_t a, uint32_t b) const {
    if ((!out_.a.merged.empty() && out_.a.merged.contains(a)) ||
        (!out_.b.merged.empty() && out_.b.merged.contains(b))) {
      return MatchMethod::kMerged;
    }
    const uint32_t key_a = out_.a.table.rows[a].key;
    const uint32_t key_b = out_.b.table.rows[b].key;
    if (aliases_done_ && key_a != key_b && !keys_.a[key_a].is_mapped &&
        !keys_.b[key_b].is_mapped &&
        CanonicalModule(names_.key(key_a).module) !=
            CanonicalModule(names_.key(key_b).module)) {
      return MatchMethod::kOrder;
    }
    if (flat_) return MatchMethod::kOccurrence;
    if (key_a == key_b) return MatchMethod::kExact;
    return keys_.a[key_a].is_mapped || keys_.b[key_b].is_mapped
               ? MatchMethod::kMapped
               : MatchMethod::kCanonical;
  }

  // Pairs every row of the left with the right row of the same place. The next
  // row is nearly always the one; a sorted index serves the others, and is made
  // only when the first is needed.
  void MatchAll() {
    const uint32_t num_a = static_cast<uint32_t>(out_.a.table.rows.size());
    const uint32_t num_b = static_cast<uint32_t>(out_.b.table.rows.size());
    out_.pairs.clear();
    out_.unmatched_a.clear();
    out_.unmatched_b.clear();
    out_.unread_a.clear();
    out_.unread_b.clear();
    out_.pairs.reserve(std::min(num_a, num_b));
    AdviseHugePages(out_.pairs.data(),
                    std::min(num_a, num_b) * sizeof(RowPair));
    std::vector<bool> taken(num_b);
    std::vector<uint32_t> index;
    uint32_t next = 0;
    out_.run_pairs.clear();
    out_.run_lines.clear();
    uint64_t run_lines = 0;
    for (uint32_t i = 0; i <= num_a; ++i) {
      for (size_t r = out_.run_pairs.size();
           r < out_.runs.size() && out_.runs[r].row_a == i; ++r) {
        out_.run_pairs.push_back(out_.pairs.size());
        out_.run_lines.push_back(run_lines);
        run_lines += out_.runs[r].keys.size();
      }
      if (i == num_a) break;
      const Place place = PlaceOf(out_.a, out_.entity_a, i);
      uint32_t found = kNone;
      if (next < num_b && PlaceOf(out_.b, out_.entity_b, next) == place) {
        found = next;
      } else {
        if (index.empty()) index = SortedRight();
        const auto it = std::lower_bound(
            index.begin(), index.end(), place,
            [&](uint32_t row, const Place& wanted) {
              return PlaceOf(out_.b, out_.entity_b, row) < wanted;
            });
        if (it != index.end() && PlaceOf(out_.b, out_.entity_b, *it) == place) {
          found = *it;
        }
      }
      if (found == kNone || taken[found]) {
        out_.unmatched_a.push_back(i);
        continue;
      }
      taken[found] = true;
      next = found + 1;
      out_.pairs.push_back({i, found, MethodOf(i, found)});
      NoteUnread(i, found);
    }
    for (uint32_t i = 0; i < num_b; ++i) {
      if (!taken[i]) out_.unmatched_b.push_back(i);
    }
  }

  void NoteUnread(uint32_t a, uint32_t b) {
    const TraceRow& row_a = out_.a.table.rows[a];
    const TraceRow& row_b = out_.b.table.rows[b];
    if (((row_a.flags | row_b.flags) & TraceRow::kUnread) == 0 ||
        row_a.IsPartner(row_b)) {
      return;
    }
    if ((row_a.flags & TraceRow::kUnread) != 0) out_.unread_a.push_back(a);
    if ((row_b.flags & TraceRow::kUnread) != 0) out_.unread_b.push_back(b);
  }

  std::vector<uint32_t> SortedRight() const {
    std::vector<uint32_t> index(out_.b.table.rows.size());
    std::iota(index.begin(), index.end(), 0u);
    std::sort(index.begin(), index.end(), [&](uint32_t x, uint32_t y) {
      return PlaceOf(out_.b, out_.entity_b, x) <
             PlaceOf(out_.b, out_.entity_b, y);
    });
    return index;
  }

  const TraceNames& names_;
  const AlignOptions& options_;
  Alignment out_;
  absl::flat_hash_map<std::string, uint32_t> entity_ids_, template_ids_;
  NamedKeys keys_;
  bool has_unread_ = false;
  bool flat_ = false;
  bool aliases_done_ = false;
};

}  // namespace

absl::string_view MatchMethodName(MatchMethod method) {
  switch (method) {
    case MatchMethod::kExact:
      return "exact";
    case MatchMethod::kCanonical:
      return "canonical";
    case MatchMethod::kMapped:
      return "map";
    case MatchMethod::kOccurrence:
      return "occurrence";
    case MatchMethod::kMerged:
      return "merged";
    case MatchMethod::kOrder:
      return "order";
  }
  return "";
}

uint64_t Alignment::NumPaired() const {
  uint64_t lines = pairs.size();
  for (const EqualRun& run : runs) lines += run.keys.size();
  return lines;
}

uint64_t Alignment::PairNumber(size_t pair) const {
  const size_t before =
      std::upper_bound(run_pairs.begin(), run_pairs.end(), pair) -
      run_pairs.begin();
  if (before == 0) return pair;
  return pair + run_lines[before - 1] + runs[before - 1].keys.size();
}

absl::StatusOr<Alignment> AlignTraces(TracePair traces, const TraceNames& names,
                                      const AlignOptions& options) {
  return Aligner(std::move(traces), names, options).Run();
}

}  // namespace firstframe
