#include "lib/wan_vae/cuda/slot_allocator.h"

#include <algorithm>
#include <iterator>

#include "lib/base/check.h"

namespace firstframe::cuda {

int SlotAllocator::Take(int slots) {
  FF_CHECK(slots > 0);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second >= slots &&
        (best == free_.end() || it->second < best->second)) {
      best = it;
    }
  }
  int first = end_;
  if (best != free_.end()) {
    first = best->first;
    const int rest = best->second - slots;
    free_.erase(best);
    if (rest > 0) free_[first + slots] = rest;
  } else if (!free_.empty() &&
             free_.rbegin()->first + free_.rbegin()->second == end_) {
    // Grow the run at the end rather than leave it behind.
    first = free_.rbegin()->first;
    free_.erase(first);
    end_ = first + slots;
  } else {
    end_ += slots;
  }
  peak_ = std::max(peak_, end_);
  used_[first] = slots;
  return first;
}

void SlotAllocator::Release(int first) {
  const auto it = used_.find(first);
  FF_CHECK(it != used_.end());
  int slots = it->second;
  used_.erase(it);
  auto next = free_.lower_bound(first);
  if (next != free_.end() && next->first == first + slots) {
    slots += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == first) {
      previous->second += slots;
      return;
    }
  }
  free_[first] = slots;
}

}  // namespace firstframe::cuda
