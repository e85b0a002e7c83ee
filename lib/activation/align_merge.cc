#include "lib/activation/align_merge.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <utility>

namespace firstframe {
namespace {

// What the parts of one whole have in common.
struct GroupKey {
  uint32_t entity;
  int32_t segment;
  int32_t step;
  uint32_t occurrence;
  auto operator<=>(const GroupKey&) const = default;
};

}  // namespace

bool HasParts(const std::vector<NamedKey>& keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [](const NamedKey& key) { return key.count > 1; });
}

void MergeMappedParts(const std::vector<NamedKey>& keys,
                      const std::vector<uint32_t>& entity_of, TraceSide* side) {
  if (!HasParts(keys)) return;
  const auto& rows = side->table.rows;
  std::vector<int32_t> group_of(rows.size(), -1), sizes;
  std::map<std::pair<uint32_t, int32_t>, uint32_t> seen;  // by key and step
  std::map<GroupKey, int32_t> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    const NamedKey& part = keys[rows[i].key];
    if (part.count < 2) continue;
    const uint32_t n = seen[{rows[i].key, rows[i].step}]++;
    const GroupKey key = {entity_of[rows[i].key], rows[i].segment, rows[i].step,
                          n};
    const auto [it, is_new] =
        groups.try_emplace(key, static_cast<int32_t>(sizes.size()));
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
  std::map<GroupKey, uint32_t> seen;
  std::map<GroupKey, int32_t> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    GroupKey key = {entity_of[rows[i].key], rows[i].segment, rows[i].step, 0};
    key.occurrence = seen[key]++;
    key.segment = 0;
    const auto [it, is_new] =
        groups.try_emplace(key, static_cast<int32_t>(sizes.size()));
    if (is_new) sizes.push_back(static_cast<int32_t>(ranks.size()));
    group_of[i] = it->second;
  }
  MergeRowGroups(group_of, sizes, side);
  for (TraceRow& row : side->table.rows) row.segment = *ranks.begin();
}

void MergeConsecutive(const std::vector<uint32_t>& times,
                      const std::vector<uint32_t>& entity_of, TraceSide* side) {
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

}  // namespace firstframe
