#include "lib/activation/align.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/activation/align_fuzzy.h"
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
  Aligner(TraceTable a, TraceTable b, const TraceNames& names,
          const AlignOptions& options)
      : names_(names), options_(options) {
    out_.a.table = std::move(a);
    out_.b.table = std::move(b);
    out_.a.names = out_.b.names = &names;
  }

  absl::StatusOr<Alignment> Run() {
    FF_RETURN_IF_ERROR(
        SelectRuns(options_, &out_.a.table, &out_.b.table, &out_.warnings));
    keys_ = NameKeys(names_, out_.a.table, out_.b.table, options_);
    out_.entity_a = InternEntities(keys_.a);
    out_.entity_b = InternEntities(keys_.b);
    out_.num_alone_a = RemoveAlone(keys_.a, &out_.a.table);
    out_.num_alone_b = RemoveAlone(keys_.b, &out_.b.table);
    MergeMappedParts(keys_.a, out_.entity_a, &out_.a);
    MergeMappedParts(keys_.b, out_.entity_b, &out_.b);
    if (options_.merge_ranks) {
      MergeRanks(out_.entity_a, &out_.a);
      MergeRanks(out_.entity_b, &out_.b);
    }
    const Census census_a = Count(out_.a, out_.entity_a);
    const Census census_b = Count(out_.b, out_.entity_b);
    MergeCalls(census_a, census_b);
    flat_ = census_a.has_steps != census_b.has_steps;
    NumberOccurrences(out_.entity_a, &out_.a);
    NumberOccurrences(out_.entity_b, &out_.b);
    MatchAll();
    // No merging takes the last record of a name away.
    FirstRecordPair first = {
        FirstRecords(out_.a, out_.entity_a, census_a.num_names),
        FirstRecords(out_.b, out_.entity_b, census_b.num_names)};
    if (MatchByOrder(names_, &first, &out_)) {
      aliases_done_ = true;
      MatchAll();
    }
    SuggestBySignature(names_, first, &out_);
    WarnOfShift(names_, first, &out_);
    return std::move(out_);
  }

 private:
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

  // Joins rows that a map sends to parts of one target: the n-th record of each
  // part at a step belong together.
  void MergeMappedParts(const std::vector<NamedKey>& keys,
                        const std::vector<uint32_t>& entity_of,
                        TraceSide* side) {
    if (std::none_of(keys.begin(), keys.end(),
                     [](const NamedKey& key) { return key.count > 1; })) {
      return;
    }
    const auto& rows = side->table.rows;
    std::vector<int32_t> group_of(rows.size(), -1), sizes;
    std::map<std::pair<uint32_t, int32_t>, uint32_t> seen;  // by key and step
    std::map<Place, int32_t> groups;
    for (size_t i = 0; i < rows.size(); ++i) {
      const NamedKey& part = keys[rows[i].key];
      if (part.count < 2) continue;
      const uint32_t n = seen[{rows[i].key, rows[i].step}]++;
      const Place place = {entity_of[rows[i].key], rows[i].segment,
                           rows[i].step, n};
      const auto [it, is_new] =
          groups.try_emplace(place, static_cast<int32_t>(sizes.size()));
      if (is_new) sizes.push_back(part.count);
      group_of[i] = it->second;
    }
    MergeRowGroups(group_of, sizes, side);
  }

  void MergeRanks(const std::vector<uint32_t>& entity_of, TraceSide* side) {
    const auto& rows = side->table.rows;
    std::set<uint16_t> ranks;
    for (const TraceRow& row : rows) ranks.insert(row.segment);
    if (ranks.size() < 2) return;
    std::vector<int32_t> group_of(rows.size()), sizes;
    std::map<Place, uint32_t> seen;
    std::map<Place, int32_t> groups;
    for (size_t i = 0; i < rows.size(); ++i) {
      Place place = {entity_of[rows[i].key], rows[i].segment, rows[i].step, 0};
      place.occurrence = seen[place]++;
      place.rank = 0;
      const auto [it, is_new] =
          groups.try_emplace(place, static_cast<int32_t>(sizes.size()));
      if (is_new) sizes.push_back(static_cast<int32_t>(ranks.size()));
      group_of[i] = it->second;
    }
    MergeRowGroups(group_of, sizes, side);
    for (TraceRow& row : side->table.rows) row.segment = *ranks.begin();
  }

  // What one pass over the rows of a side tells.
  struct Census {
    std::vector<uint32_t> counts, first;  // by entity
    size_t num_names = 0;
    bool has_steps = false;
  };

  Census Count(const TraceSide& side,
               const std::vector<uint32_t>& entity_of) const {
    Census census;
    census.counts.resize(out_.entities.size());
    census.first.assign(out_.entities.size(), kNone);
    for (uint32_t i = 0; i < side.table.rows.size(); ++i) {
      const TraceRow& row = side.table.rows[i];
      const uint32_t entity = entity_of[row.key];
      census.has_steps |= row.step != kNoStep;
      if (census.counts[entity]++ != 0) continue;
      census.first[entity] = i;
      ++census.num_names;
    }
    return census;
  }

  // One side ran a batch in one call, the other in several (two halves of
  // classifier-free guidance): n times the records, of 1/n the elements.
  void MergeCalls(const Census& census_a, const Census& census_b) {
    const std::vector<uint32_t>& counts_a = census_a.counts;
    const std::vector<uint32_t>& counts_b = census_b.counts;
    std::vector<uint32_t> merge_a(counts_a.size()), merge_b(counts_a.size());
    bool any_a = false, any_b = false;
    for (size_t e = 0; e < counts_a.size(); ++e) {
      if (counts_a[e] == counts_b[e] || counts_a[e] == 0 || counts_b[e] == 0) {
        continue;
      }
      const double numel_a = out_.a.Numel(census_a.first[e]);
      const double numel_b = out_.b.Numel(census_b.first[e]);
      if (numel_a == 0 || numel_b == 0) continue;
      if (counts_a[e] % counts_b[e] == 0 &&
          numel_b == numel_a * (counts_a[e] / counts_b[e])) {
        merge_a[e] = counts_a[e] / counts_b[e];
        any_a = true;
      } else if (counts_b[e] % counts_a[e] == 0 &&
                 numel_a == numel_b * (counts_b[e] / counts_a[e])) {
        merge_b[e] = counts_b[e] / counts_a[e];
        any_b = true;
      }
    }
    if (!any_a && !any_b) {
      if (!census_a.has_steps && !census_b.has_steps) {
        DropEarlierRuns(counts_a, counts_b);
      }
      return;
    }
    if (any_a) MergeConsecutive(merge_a, out_.entity_a, &out_.a);
    if (any_b) MergeConsecutive(merge_b, out_.entity_b, &out_.b);
    out_.warnings.push_back(absl::StrCat(
        "the ", any_a ? "left" : "right",
        " trace has several calls where the other has one of a larger batch; "
        "they are merged"));
  }

  void MergeConsecutive(const std::vector<uint32_t>& times,
                        const std::vector<uint32_t>& entity_of,
                        TraceSide* side) {
    const auto& rows = side->table.rows;
    std::vector<int32_t> group_of(rows.size(), -1), sizes;
    std::vector<uint32_t> seen(times.size());
    std::vector<int32_t> open(times.size(), -1);
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t entity = entity_of[rows[i].key];
      if (times[entity] < 2) continue;
      if (seen[entity]++ % times[entity] == 0) {
        open[entity] = static_cast<int32_t>(sizes.size());
        sizes.push_back(static_cast<int32_t>(times[entity]));
      }
      group_of[i] = open[entity];
    }
    MergeRowGroups(group_of, sizes, side);
  }

  // Without steps or run keys an appended run shows only in the counts: every
  // name m times as often as on the other side.
  void DropEarlierRuns(const std::vector<uint32_t>& counts_a,
                       const std::vector<uint32_t>& counts_b) {
    if (DropFrom("left", counts_a, counts_b, out_.entity_a, &out_.a)) return;
    DropFrom("right", counts_b, counts_a, out_.entity_b, &out_.b);
  }

  bool DropFrom(absl::string_view which, const std::vector<uint32_t>& many,
                const std::vector<uint32_t>& few,
                const std::vector<uint32_t>& entity_of, TraceSide* side) {
    uint32_t times = 0, shared = 0;
    for (size_t e = 0; e < many.size(); ++e) {
      if (many[e] == 0 || few[e] == 0) continue;
      const uint32_t t = many[e] % few[e] == 0 ? many[e] / few[e] : 0;
      if (t < 2 || (times != 0 && t != times)) return false;
      times = t;
      ++shared;
    }
    if (shared < 2) return false;  // one name alone proves nothing
    std::vector<uint32_t> seen(many.size());
    std::vector<TraceRow> kept;
    absl::flat_hash_map<uint32_t, TraceRecord> merged;
    for (uint32_t i = 0; i < side->table.rows.size(); ++i) {
      const uint32_t e = entity_of[side->table.rows[i].key];
      if (++seen[e] <= many[e] - std::max(few[e], many[e] / times)) continue;
      if (const auto it = side->merged.find(i); it != side->merged.end()) {
        merged[static_cast<uint32_t>(kept.size())] = it->second;
      }
      kept.push_back(side->table.rows[i]);
    }
    side->table.rows = std::move(kept);
    side->merged = std::move(merged);
    out_.warnings.push_back(absl::StrCat(
        "every module of the ", which, " trace occurs ", times,
        " times as often as in the other; taking its last share, as if ", times,
        " runs had been appended"));
    return true;
  }

  // A row's number among those of its entity, rank and step (of its entity and
  // rank alone when one side has no steps).
  void NumberOccurrences(const std::vector<uint32_t>& entity_of,
                         TraceSide* side) {
    struct Last {
      int32_t step = kNoStep;
      uint32_t count = 0;
    };
    const size_t num_segments = side->table.segments.size();
    std::vector<Last> last(out_.entities.size() * num_segments);
    for (TraceRow& row : side->table.rows) {
      Last& state = last[entity_of[row.key] * num_segments + row.segment];
      if (!flat_ && state.step != row.step) state = {row.step, 0};
      row.occurrence = state.count++;
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
    for (uint32_t i = 0; i < num_a; ++i) {
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

absl::StatusOr<Alignment> AlignTraces(TraceTable a, TraceTable b,
                                      const TraceNames& names,
                                      const AlignOptions& options) {
  return Aligner(std::move(a), std::move(b), names, options).Run();
}

}  // namespace firstframe
