#include "lib/activation/align_names.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/activation/module_name.h"

namespace firstframe {
namespace {

std::vector<bool> UsedKeys(const TraceTable& table,
                           const std::vector<EqualRun>& runs, size_t num_keys) {
  std::vector<bool> used(num_keys);
  for (const TraceRow& row : table.rows) used[row.key] = true;
  for (const EqualRun& run : runs) {
    for (const uint32_t key : run.keys) used[key] = true;
  }
  return used;
}

// The names of one side: mapped by `map`, where there is one, and alone where
// `other` map says so.
std::vector<NamedKey> NameSide(const TraceNames& names, const NameMap* map,
                               const NameMap* other) {
  std::vector<NamedKey> keys(names.num_keys());
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const TraceNames::Key& key = names.key(i);
    NamedKey& named = keys[i];
    named.module = CanonicalModule(key.module);
    named.tensor = key.tensor;
    if (other != nullptr && other->IsTargetAlone(named.module, named.tensor)) {
      named.is_alone = true;
    }
    if (map == nullptr) continue;
    const auto mapped = map->Apply(named.module, named.tensor);
    if (!mapped) continue;
    named.is_mapped = true;
    named.is_alone |= mapped->has_none;
    if (mapped->has_none) continue;
    named.module = mapped->name;
    if (!mapped->tensor.empty()) named.tensor = mapped->tensor;
    named.index = mapped->index;
    named.count = mapped->count;
  }
  return keys;
}

// How many modules of the left are, after the map, modules of the right.
int64_t CountCommon(const NamedKeys& keys, const std::vector<bool>& used_a,
                    const std::vector<bool>& used_b) {
  absl::flat_hash_set<absl::string_view> right, common;
  for (size_t i = 0; i < keys.b.size(); ++i) {
    if (used_b[i] && !keys.b[i].is_alone) right.insert(keys.b[i].module);
  }
  for (size_t i = 0; i < keys.a.size(); ++i) {
    if (used_a[i] && !keys.a[i].is_alone && right.contains(keys.a[i].module)) {
      common.insert(keys.a[i].module);
    }
  }
  return static_cast<int64_t>(common.size());
}

// What outputs a module has on one side.
struct Labels {
  bool whole = false;   // "out"
  bool first = false;   // "out[0]"
  bool others = false;  // any other "out..."
  bool IsTupleOfOne() const { return first && !whole && !others; }
};
using LabelsByModule = absl::flat_hash_map<std::string, Labels>;

LabelsByModule LabelsOf(const std::vector<NamedKey>& keys,
                        const std::vector<bool>& used) {
  LabelsByModule by_module;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!used[i] || keys[i].is_alone) continue;
    Labels& labels = by_module[keys[i].module];
    if (keys[i].tensor == "out") {
      labels.whole = true;
    } else if (keys[i].tensor == "out[0]") {
      labels.first = true;
    } else if (absl::StartsWith(keys[i].tensor, "out")) {
      labels.others = true;
    }
  }
  return by_module;
}

void UnwrapTuples(const LabelsByModule& own, const LabelsByModule& other,
                  std::vector<NamedKey>* keys) {
  for (NamedKey& key : *keys) {
    if (key.tensor != "out[0]" || key.is_alone) continue;
    const auto mine = own.find(key.module);
    const auto theirs = other.find(key.module);
    if (mine == own.end() || theirs == other.end()) continue;
    if (mine->second.IsTupleOfOne() && theirs->second.whole &&
        !theirs->second.first) {
      key.tensor = "out";
    }
  }
}

}  // namespace

NamedKeys NameKeys(const TraceNames& names, const Alignment& alignment,
                   const AlignOptions& options) {
  NamedKeys keys;
  bool has_tuples = false;
  for (uint32_t i = 0; i < names.num_keys(); ++i) {
    has_tuples |= names.key(i).tensor == "out[0]";
  }
  std::vector<bool> used_a, used_b;
  if (has_tuples || options.preset != nullptr) {
    used_a = UsedKeys(alignment.a.table, alignment.runs, names.num_keys());
    used_b = UsedKeys(alignment.b.table, alignment.runs, names.num_keys());
  }
  if (options.preset != nullptr) {
    const NameMap* const map = options.preset;
    keys = {NameSide(names, map, nullptr), NameSide(names, nullptr, map)};
    // Either side may be the one to translate, or none: two runs of one model.
    for (NamedKeys other : {NamedKeys{NameSide(names, nullptr, map),
                                      NameSide(names, map, nullptr)},
                            NamedKeys{NameSide(names, nullptr, nullptr),
                                      NameSide(names, nullptr, nullptr)}}) {
      if (CountCommon(other, used_a, used_b) >
          CountCommon(keys, used_a, used_b)) {
        keys = std::move(other);
      }
    }
  } else {
    keys = {NameSide(names, options.map_a, options.map_b),
            NameSide(names, options.map_b, options.map_a)};
  }
  if (has_tuples) {
    const LabelsByModule left = LabelsOf(keys.a, used_a);
    const LabelsByModule right = LabelsOf(keys.b, used_b);
    UnwrapTuples(left, right, &keys.a);
    UnwrapTuples(right, left, &keys.b);
  }
  return keys;
}

int64_t RemoveAlone(const std::vector<NamedKey>& keys, TraceTable* table) {
  if (std::none_of(keys.begin(), keys.end(),
                   [](const NamedKey& key) { return key.is_alone; })) {
    return 0;
  }
  auto& rows = table->rows;
  const auto end = std::remove_if(
      rows.begin(), rows.end(),
      [&](const TraceRow& row) { return keys[row.key].is_alone; });
  const int64_t removed = rows.end() - end;
  rows.erase(end, rows.end());
  return removed;
}

}  // namespace firstframe
