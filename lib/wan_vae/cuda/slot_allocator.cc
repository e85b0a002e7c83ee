#include "lib/wan_vae/cuda/slot_allocator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/check.h"

namespace firstframe::cuda {
namespace {

// Runs of at least this share of the largest are large.
constexpr double kLargeShare = 0.4;

// What is placed already, in order of falling ends.
struct Placed {
  struct Entry {
    int64_t begin, end;
    int first, slots;
  };
  std::vector<Entry> entries;
  int64_t longest = 0;

  void Add(const Entry& entry) {
    entries.push_back(entry);
    longest = std::max(longest, entry.end - entry.begin);
  }

  // Appends the slots of those alive in [begin, end).
  void CollectAlive(int64_t begin, int64_t end,
                    std::vector<std::pair<int, int>>& ranges) const {
    // Those that end later than this began after `end`.
    const int64_t latest = end + longest;
    auto at = std::lower_bound(
        entries.begin(), entries.end(), latest,
        [](const Entry& entry, int64_t time) { return entry.end >= time; });
    for (; at != entries.end() && at->end > begin; ++at) {
      if (at->begin < end) {
        ranges.emplace_back(at->first, at->first + at->slots);
      }
    }
  }
};

}  // namespace

int SlotAllocator::Take(int slots) {
  FF_CHECK(slots > 0);
  runs_.push_back({.slots = slots, .begin = now_++});
  alive_ += slots;
  most_alive_ = std::max(most_alive_, alive_);
  return static_cast<int>(runs_.size()) - 1;
}

void SlotAllocator::Release(int run) {
  FF_CHECK(run >= 0 && run < static_cast<int>(runs_.size()));
  FF_CHECK(runs_[run].end == kAlive);
  runs_[run].end = now_++;
  alive_ -= runs_[run].slots;
}

SlotAllocator::Placement SlotAllocator::Place() const {
  std::vector<Run> runs = runs_;
  int largest = 0;
  for (Run& run : runs) {
    run.end = std::min(run.end, now_);
    largest = std::max(largest, run.slots);
  }
  const auto is_large = [largest](const Run& run) {
    return run.slots >= kLargeShare * largest;
  };
  std::vector<int> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(is_large(runs[a]), runs[a].end) >
           std::make_pair(is_large(runs[b]), runs[b].end);
  });
  Placement placement;
  placement.first.resize(runs.size());
  Placed placed[2];  // small, large
  std::vector<std::pair<int, int>> ranges;
  for (const int i : order) {
    const Run& run = runs[i];
    ranges.clear();
    for (const Placed& some : placed) {
      some.CollectAlive(run.begin, run.end, ranges);
    }
    std::sort(ranges.begin(), ranges.end());
    int first = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin - first >= run.slots) break;
      first = std::max(first, end);
    }
    placement.first[i] = first;
    placement.slots = std::max(placement.slots, first + run.slots);
    placed[is_large(run)].Add({run.begin, run.end, first, run.slots});
  }
  return placement;
}

}  // namespace firstframe::cuda
