#include "lib/activation/align_census.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "lib/activation/align_merge.h"

namespace firstframe {
namespace {

// What the runs hold, which is the same for both sides. By key.
struct RunCensus {
  std::vector<uint32_t> counts;
  bool has_steps = false;
};

RunCensus CountRuns(const std::vector<EqualRun>& runs, size_t num_keys) {
  RunCensus census;
  census.counts.resize(num_keys);
  for (const EqualRun& run : runs) {
    for (const uint32_t key : run.keys) ++census.counts[key];
    for (const EqualRun::StepChange& change : run.steps) {
      census.has_steps |= change.step != kNoStep;
    }
  }
  return census;
}

Census Count(const std::vector<TraceRow>& rows,
             const std::vector<uint32_t>& entity_of, size_t num_entities,
             const RunCensus& runs) {
  Census census;
  census.has_steps = runs.has_steps;
  census.counts.resize(num_entities);
  census.first.resize(num_entities);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const uint32_t entity = entity_of[rows[i].key];
    census.has_steps |= rows[i].step != kNoStep;
    if (census.counts[entity]++ == 0) census.first[entity] = i;
  }
  for (size_t key = 0; key < runs.counts.size(); ++key) {
    census.counts[entity_of[key]] += runs.counts[key];
  }
  for (const uint32_t count : census.counts) census.num_names += count > 0;
  return census;
}

enum class Drop { kNothing, kDone, kNeedsRows };

Drop DropFrom(bool is_left, const std::vector<uint32_t>& many,
              const std::vector<uint32_t>& few, Alignment* alignment) {
  const std::vector<uint32_t>& entity_of =
      is_left ? alignment->entity_a : alignment->entity_b;
  TraceSide* const side = is_left ? &alignment->a : &alignment->b;
  uint32_t times = 0, shared = 0;
  for (size_t e = 0; e < many.size(); ++e) {
    if (many[e] == 0 || few[e] == 0) continue;
    const uint32_t t = many[e] % few[e] == 0 ? many[e] / few[e] : 0;
    if (t < 2 || (times != 0 && t != times)) return Drop::kNothing;
    times = t;
    ++shared;
  }
  if (shared < 2) return Drop::kNothing;  // one name alone proves nothing
  if (!alignment->runs.empty()) return Drop::kNeedsRows;
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
  alignment->warnings.push_back(absl::StrCat(
      "every module of the ", is_left ? "left" : "right", " trace occurs ",
      times, " times as often as in the other; taking its last share, as if ",
      times, " runs had been appended"));
  return Drop::kDone;
}

}  // namespace

CensusPair CountNames(const Alignment& alignment, size_t num_keys) {
  const RunCensus runs = CountRuns(alignment.runs, num_keys);
  const size_t num_entities = alignment.entities.size();
  return {
      Count(alignment.a.table.rows, alignment.entity_a, num_entities, runs),
      Count(alignment.b.table.rows, alignment.entity_b, num_entities, runs)};
}

CallMerge PlanMerge(const CensusPair& census, const Alignment& alignment) {
  const std::vector<uint32_t>& counts_a = census.a.counts;
  const std::vector<uint32_t>& counts_b = census.b.counts;
  CallMerge merge;
  merge.a.resize(counts_a.size());
  merge.b.resize(counts_a.size());
  for (size_t e = 0; e < counts_a.size(); ++e) {
    if (counts_a[e] == counts_b[e] || counts_a[e] == 0 || counts_b[e] == 0) {
      continue;
    }
    const double numel_a = alignment.a.Numel(census.a.first[e]);
    const double numel_b = alignment.b.Numel(census.b.first[e]);
    if (numel_a == 0 || numel_b == 0) continue;
    if (counts_a[e] % counts_b[e] == 0 &&
        numel_b == numel_a * (counts_a[e] / counts_b[e])) {
      merge.a[e] = counts_a[e] / counts_b[e];
      merge.any_a = true;
    } else if (counts_b[e] % counts_a[e] == 0 &&
               numel_a == numel_b * (counts_b[e] / counts_a[e])) {
      merge.b[e] = counts_b[e] / counts_a[e];
      merge.any_b = true;
    }
  }
  return merge;
}

void MergeCalls(const CallMerge& merge, Alignment* alignment) {
  if (!merge.any()) return;
  if (merge.any_a) {
    MergeConsecutive(merge.a, alignment->entity_a, &alignment->a);
  }
  if (merge.any_b) {
    MergeConsecutive(merge.b, alignment->entity_b, &alignment->b);
  }
  alignment->warnings.push_back(absl::StrCat(
      "the ", merge.any_a ? "left" : "right",
      " trace has several calls where the other has one of a larger batch; "
      "they are merged"));
}

bool DropEarlierRuns(const CensusPair& census, Alignment* alignment) {
  if (census.a.has_steps || census.b.has_steps) return true;
  Drop drop =
      DropFrom(/*is_left=*/true, census.a.counts, census.b.counts, alignment);
  if (drop == Drop::kNothing) {
    drop = DropFrom(/*is_left=*/false, census.b.counts, census.a.counts,
                    alignment);
  }
  return drop != Drop::kNeedsRows;
}

}  // namespace firstframe
