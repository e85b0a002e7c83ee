// The region of each launch, by CUPTI's correlation id.

#ifndef LIB_PROFILER_CORRELATION_MAP_H_
#define LIB_PROFILER_CORRELATION_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/container/flat_hash_map.h"

namespace firstframe {

// Correlation ids are given out in order, so that a page holds neighbours and
// the oldest page is dropped whole. Work that arrives four million launches
// after its own finds no region. At most 16 MiB. Not thread-safe.
class CorrelationMap {
 public:
  static constexpr size_t kPageSize = size_t{1} << 14;
  static constexpr size_t kMaxPages = 256;

  // Sets the value, not 0, of an id.
  void Set(uint32_t correlation, uint32_t value) {
    auto& page = pages_[correlation / kPageSize];
    if (page == nullptr) {
      page = std::make_unique<Page>();
      page->fill(0);
      order_.push_back(correlation / kPageSize);
    }
    (*page)[correlation % kPageSize] = value;
    if (order_.size() > kMaxPages) {
      pages_.erase(order_.front());
      order_.pop_front();
    }
  }

  // The value, or 0.
  uint32_t Get(uint32_t correlation) const {
    const auto found = pages_.find(correlation / kPageSize);
    return found == pages_.end() ? 0
                                 : (*found->second)[correlation % kPageSize];
  }

 private:
  using Page = std::array<uint32_t, kPageSize>;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Page>> pages_;
  std::deque<uint32_t> order_;  // pages, oldest first
};

}  // namespace firstframe

#endif  // LIB_PROFILER_CORRELATION_MAP_H_
