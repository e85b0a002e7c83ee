// Work whose times can only be read later: a queue that settles its oldest item
// once the device has passed it, or once enough younger ones show that waiting
// longer would be pointless.

#ifndef LIB_TIMING_DEFERRED_QUEUE_H_
#define LIB_TIMING_DEFERRED_QUEUE_H_

#include <cstddef>
#include <deque>
#include <utility>

namespace firstframe {

// Items settle in the order in which they were pushed. Thread-compatible.
template <typename Item>
class DeferredQueue {
 public:
  // Of the items behind the oldest one, how many may wait with it before it is
  // settled unready.
  static constexpr size_t kSettleLag = 2;

  void Push(Item item) { items_.push_back(std::move(item)); }

  // Calls `settle(item)` for the oldest items that are ready or have waited
  // long enough; for all with `force`. Never waits.
  template <typename Ready, typename Settle>
  void Drain(const Ready& is_ready, const Settle& settle, bool force = false) {
    while (!items_.empty()) {
      const bool overdue = items_.size() > kSettleLag;
      if (!force && !overdue && !is_ready(items_.front())) return;
      Item item = std::move(items_.front());
      items_.pop_front();
      settle(std::move(item));
    }
  }

  size_t size() const { return items_.size(); }

 private:
  std::deque<Item> items_;
};

}  // namespace firstframe

#endif  // LIB_TIMING_DEFERRED_QUEUE_H_
