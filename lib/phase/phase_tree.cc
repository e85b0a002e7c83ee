#include "lib/phase/phase_tree.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// Deeper phases get a path that begins here, so that a hostile file of n nested
// phases does not ask for n * n characters.
constexpr int kMaxPathDepth = 64;

using Interval = std::pair<int64_t, int64_t>;

Interval IntervalOf(const PhaseRecord& phase) {
  return {phase.start_offset_ns, phase.start_offset_ns + phase.duration_ns};
}

// Calls `on_gap(start, end)` for each part of [start, end) that no interval
// covers.
template <typename OnGap>
void ForEachGap(std::vector<Interval> intervals, Interval whole, OnGap on_gap) {
  std::sort(intervals.begin(), intervals.end());
  int64_t covered_to = whole.first;
  for (const auto& [start, end] : intervals) {
    if (start > covered_to && covered_to < whole.second) {
      on_gap(covered_to, std::min(start, whole.second));
    }
    covered_to = std::max(covered_to, end);
  }
  if (covered_to < whole.second) on_gap(covered_to, whole.second);
}

struct Links {
  std::vector<size_t> roots;
  std::vector<std::vector<size_t>> children;
};

Links Link(const std::vector<PhaseRecord>& phases) {
  absl::flat_hash_map<int64_t, size_t> by_id;
  for (size_t i = 0; i < phases.size(); ++i) by_id.emplace(phases[i].id, i);
  std::vector<size_t> parents(phases.size(), kNone);
  for (size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i].parent_id) continue;
    const auto found = by_id.find(*phases[i].parent_id);
    if (found != by_id.end()) parents[i] = found->second;
  }
  // Cuts a cycle at the first of its phases: a chain of parents that is longer
  // than the number of phases has come back to where it was.
  enum : char { kUnseen, kOnPath, kDone };
  std::vector<char> state(phases.size(), kUnseen);
  for (size_t i = 0; i < phases.size(); ++i) {
    std::vector<size_t> path;
    size_t at = i;
    while (at != kNone && state[at] == kUnseen) {
      state[at] = kOnPath;
      path.push_back(at);
      at = parents[at];
    }
    if (at != kNone && state[at] == kOnPath) parents[at] = kNone;
    for (const size_t seen : path) state[seen] = kDone;
  }
  Links links = {.children = std::vector<std::vector<size_t>>(phases.size())};
  for (size_t i = 0; i < phases.size(); ++i) {
    (parents[i] == kNone ? links.roots : links.children[parents[i]])
        .push_back(i);
  }
  const auto by_start = [&](size_t a, size_t b) {
    return phases[a].start_offset_ns < phases[b].start_offset_ns;
  };
  std::stable_sort(
      links.roots.begin(), links.roots.end(), [&](size_t a, size_t b) {
        return std::pair(phases[a].lane, phases[a].start_offset_ns) <
               std::pair(phases[b].lane, phases[b].start_offset_ns);
      });
  for (auto& children : links.children) {
    std::stable_sort(children.begin(), children.end(), by_start);
  }
  return links;
}

int64_t SelfNs(const std::vector<PhaseRecord>& phases, size_t index,
               const std::vector<size_t>& children) {
  std::vector<Interval> covered;
  for (const size_t child : children) {
    if (phases[child].lane == phases[index].lane) {
      covered.push_back(IntervalOf(phases[child]));
    }
  }
  int64_t self_ns = 0;
  ForEachGap(std::move(covered), IntervalOf(phases[index]),
             [&](int64_t start, int64_t end) { self_ns += end - start; });
  return self_ns;
}

}  // namespace

PhaseTree BuildPhaseTree(const PhaseReport& report) {
  const std::vector<PhaseRecord>& phases = report.phases;
  const Links links = Link(phases);
  PhaseTree tree;
  tree.nodes.reserve(phases.size());
  // An explicit stack: a hostile file may nest as deep as it has phases.
  std::vector<PhaseNode> stack;
  const auto push = [&](const std::vector<size_t>& siblings, int depth,
                        const std::string& prefix) {
    for (size_t i = siblings.size(); i-- > 0;) {
      stack.push_back({.index = siblings[i],
                       .depth = depth,
                       .path = absl::StrCat(prefix, phases[siblings[i]].name),
                       .is_last = i + 1 == siblings.size()});
    }
  };
  push(links.roots, 0, "");
  while (!stack.empty()) {
    PhaseNode node = std::move(stack.back());
    stack.pop_back();
    const std::vector<size_t>& children = links.children[node.index];
    node.self_ns = SelfNs(phases, node.index, children);
    push(children, node.depth + 1,
         node.depth % kMaxPathDepth == kMaxPathDepth - 1
             ? ".../"
             : absl::StrCat(node.path, "/"));
    tree.nodes.push_back(std::move(node));
  }
  std::vector<Interval> covered;
  for (const size_t root : links.roots) {
    covered.push_back(IntervalOf(phases[root]));
  }
  ForEachGap(std::move(covered), {0, report.recording_duration_ns},
             [&](int64_t start, int64_t end) {
               tree.gaps.push_back(
                   {.start_offset_ns = start, .duration_ns = end - start});
             });
  return tree;
}

}  // namespace firstframe
