#include "lib/activation/align_fuzzy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/activation/module_name.h"
#include "lib/base/regex.h"

namespace firstframe {
namespace {

// The order pass compares every name with every name: 4000 on each side is a
// second; no published model has as many modules.
constexpr size_t kMaxNames = 4000;

std::set<uint32_t> EntitiesOf(const std::vector<FirstRecord>& names) {
  std::set<uint32_t> entities;
  for (const FirstRecord& name : names) entities.insert(name.entity);
  return entities;
}

std::string TokenOf(const TraceNames& names, const TraceSide& side,
                    const FirstRecord& named, const std::set<uint32_t>& other) {
  // A name that both have stands for itself: an anchor.
  if (other.contains(named.entity)) return absl::StrCat("#", named.entity);
  const TraceNames::Key& key = names.key(named.key);
  const TraceRow& row = side.table.rows[named.row];
  // An element of a list has no name of its own: "blocks.3" and "layers.3".
  std::string leaf = LeafTemplate(CanonicalModule(key.module));
  if (absl::EndsWith(leaf, ".*")) leaf = "*";
  return absl::StrCat(leaf, " ", key.tensor, " ", row.shape, " ", row.dtype);
}

// Pairs of positions of a longest common subsequence.
std::vector<std::pair<size_t, size_t>> CommonSubsequence(
    const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const size_t width = b.size() + 1;
  std::vector<uint16_t> length((a.size() + 1) * width);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      length[i * width + j] = a[i] == b[j]
                                  ? length[(i + 1) * width + j + 1] + 1
                                  : std::max(length[(i + 1) * width + j],
                                             length[i * width + j + 1]);
    }
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      pairs.emplace_back(i++, j++);
    } else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

bool IsNear(float a, float b) {
  return std::isfinite(a) && std::isfinite(b) &&
         std::abs(a - b) <= 0.01f * std::max(std::abs(a), std::abs(b));
}

// "blocks.3.x" to {"blocks.*.x", 3} for every number in it.
struct Indexed {
  std::string pattern;
  int64_t index;
};
std::vector<Indexed> SplitIndices(absl::string_view module) {
  const std::vector<std::string> parts = absl::StrSplit(module, '.');
  std::vector<Indexed> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t index = 0;
    if (!absl::SimpleAtoi(parts[i], &index)) continue;
    std::string pattern;
    for (size_t j = 0; j < parts.size(); ++j) {
      absl::StrAppend(&pattern, j ? "." : "", j == i ? "*" : parts[j]);
    }
    out.push_back({std::move(pattern), index});
  }
  return out;
}

using Stack = std::map<int64_t, float>;  // abs_mean by index

std::map<std::string, Stack> StacksOf(const TraceNames& names,
                                      const TraceSide& side,
                                      const std::vector<FirstRecord>& first) {
  std::map<std::string, Stack> stacks;
  for (const FirstRecord& named : first) {
    const float value = side.table.rows[named.row].values[kAbsMean];
    if (!std::isfinite(value) || value <= 0) continue;
    const TraceNames::Key& key = names.key(named.key);
    for (const Indexed& part : SplitIndices(CanonicalModule(key.module))) {
      stacks[absl::StrCat(part.pattern, " ", key.tensor)][part.index] = value;
    }
  }
  return stacks;
}

// Mean distance of the logarithms at an offset; negative when too few overlap.
double Cost(const Stack& a, const Stack& b, int offset) {
  double sum = 0;
  int count = 0;
  for (const auto& [index, value] : a) {
    const auto it = b.find(index + offset);
    if (it == b.end()) continue;
    sum += std::abs(std::log(value / it->second));
    ++count;
  }
  return count >= 3 ? sum / count : -1;
}

}  // namespace

std::vector<FirstRecord> FirstRecords(const TraceSide& side,
                                      const std::vector<uint32_t>& entity_of,
                                      size_t num_names) {
  std::vector<FirstRecord> names;
  std::vector<bool> seen;
  const uint32_t num_rows = static_cast<uint32_t>(side.table.rows.size());
  for (uint32_t i = 0; i < num_rows && names.size() < num_names; ++i) {
    const uint32_t key = side.table.rows[i].key;
    const uint32_t entity = entity_of[key];
    if (entity >= seen.size()) seen.resize(entity + 1);
    if (seen[entity]) continue;
    seen[entity] = true;
    names.push_back({entity, key, i});
  }
  return names;
}

bool MatchByOrder(const TraceNames& names, FirstRecordPair* first,
                  Alignment* alignment) {
  const std::vector<FirstRecord>& left = first->a;
  std::vector<FirstRecord>& right = first->b;
  const std::set<uint32_t> on_left = EntitiesOf(left);
  const std::set<uint32_t> on_right = EntitiesOf(right);
  if (on_left == on_right) return false;
  if (left.size() > kMaxNames || right.size() > kMaxNames) {
    alignment->warnings.push_back(
        absl::StrCat("more than ", kMaxNames,
                     " names: those on one side alone are not aligned by "
                     "order"));
    return false;
  }
  std::vector<std::string> tokens_a, tokens_b;
  for (const FirstRecord& named : left) {
    tokens_a.push_back(TokenOf(names, alignment->a, named, on_right));
  }
  for (const FirstRecord& named : right) {
    tokens_b.push_back(TokenOf(names, alignment->b, named, on_left));
  }
  absl::flat_hash_map<uint32_t, uint32_t> alias;
  for (const auto& [i, j] : CommonSubsequence(tokens_a, tokens_b)) {
    if (left[i].entity == right[j].entity) continue;
    alias[right[j].entity] = left[i].entity;
    alignment->suggestions.push_back({names.key(left[i].key).module,
                                      names.key(right[j].key).module, "order"});
  }
  for (uint32_t& entity : alignment->entity_b) {
    if (const auto it = alias.find(entity); it != alias.end()) {
      entity = it->second;
    }
  }
  for (FirstRecord& record : right) {
    if (const auto it = alias.find(record.entity); it != alias.end()) {
      record.entity = it->second;
    }
  }
  return !alias.empty();
}

void SuggestBySignature(const TraceNames& names, const FirstRecordPair& first,
                        Alignment* alignment) {
  const std::vector<FirstRecord>& left = first.a;
  const std::vector<FirstRecord>& right = first.b;
  const std::set<uint32_t> on_left = EntitiesOf(left);
  const std::set<uint32_t> on_right = EntitiesOf(right);
  if (left.size() > kMaxNames || right.size() > kMaxNames) return;
  std::set<uint32_t> used;
  for (const FirstRecord& a : left) {
    if (on_right.contains(a.entity)) continue;
    const TraceRow& row_a = alignment->a.table.rows[a.row];
    for (const FirstRecord& b : right) {
      if (on_left.contains(b.entity) || used.contains(b.entity)) continue;
      const TraceRow& row_b = alignment->b.table.rows[b.row];
      if (row_a.shape != row_b.shape ||
          !IsNear(row_a.values[kAbsMean], row_b.values[kAbsMean]) ||
          (row_a.Kind(kStd) == ValueKind::kNumber &&
           !IsNear(row_a.values[kStd], row_b.values[kStd]))) {
        continue;
      }
      used.insert(b.entity);
      alignment->suggestions.push_back(
          {names.key(a.key).module, names.key(b.key).module, "signature"});
      break;
    }
  }
}

void WarnOfShift(const TraceNames& names, const FirstRecordPair& first,
                 Alignment* alignment) {
  const auto left = StacksOf(names, alignment->a, first.a);
  const auto right = StacksOf(names, alignment->b, first.b);
  std::map<int, int> votes;
  int stacks = 0;
  for (const auto& [pattern, a] : left) {
    const auto it = right.find(pattern);
    if (it == right.end() || a.size() < 4) continue;
    const double own = Cost(a, it->second, 0);
    ++stacks;
    if (own < 0.02) continue;
    for (const int offset : {-2, -1, 1, 2}) {
      const double cost = Cost(a, it->second, offset);
      if (cost >= 0 && cost < own / 5) ++votes[offset];
    }
  }
  for (const auto& [offset, count] : votes) {
    if (2 * count <= stacks) continue;
    alignment->warnings.push_back(absl::StrCat(
        "layer k of the left trace has the numbers of layer k",
        offset > 0 ? "+" : "", offset, " of the right one, in ", count, " of ",
        stacks, " stacks: are the layers numbered off by ", std::abs(offset),
        "?"));
  }
}

std::string SuggestedMap(const std::vector<NameSuggestion>& suggestions) {
  std::string out;
  std::set<std::string> seen;
  for (const NameSuggestion& s : suggestions) {
    const std::vector<std::string> parts_a = absl::StrSplit(s.a, '.');
    const std::vector<std::string> parts_b = absl::StrSplit(s.b, '.');
    std::vector<std::string> numbers_a, numbers_b;
    int64_t ignored = 0;
    for (const auto& part : parts_a) {
      if (absl::SimpleAtoi(part, &ignored)) numbers_a.push_back(part);
    }
    for (const auto& part : parts_b) {
      if (absl::SimpleAtoi(part, &ignored)) numbers_b.push_back(part);
    }
    const bool general = numbers_a == numbers_b;
    std::string pattern = "^", target;
    int group = 0;
    for (size_t i = 0; i < parts_a.size(); ++i) {
      const bool is_number = absl::SimpleAtoi(parts_a[i], &ignored);
      absl::StrAppend(
          &pattern, i ? "\\." : "",
          general && is_number ? "(\\d+)" : RE2::QuoteMeta(parts_a[i]));
    }
    for (size_t i = 0; i < parts_b.size(); ++i) {
      const bool is_number = absl::SimpleAtoi(parts_b[i], &ignored);
      absl::StrAppend(
          &target, i ? "." : "",
          general && is_number ? absl::StrCat("\\", ++group) : parts_b[i]);
    }
    const std::string line = absl::StrCat(pattern, "$ => ", target);
    if (seen.insert(line).second) {
      absl::StrAppend(&out, "# by ", s.method, "\n", line, "\n");
    }
  }
  return out;
}

}  // namespace firstframe
