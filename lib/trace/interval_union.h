// The length of the union of intervals that come in order of their starts.

#ifndef LIB_TRACE_INTERVAL_UNION_H_
#define LIB_TRACE_INTERVAL_UNION_H_

#include <algorithm>
#include <cstdint>

namespace firstframe {

class IntervalUnion {
 public:
  // Starts must not decrease. An interval that ends before it starts counts as
  // empty.
  void Add(int64_t start, int64_t end) {
    if (empty_) {
      empty_ = false;
      first_ = start;
      covered_to_ = start;
    }
    if (start > covered_to_) covered_to_ = start;
    if (end > covered_to_) {
      length_ += end - covered_to_;
      covered_to_ = end;
    }
  }

  bool empty() const { return empty_; }
  int64_t length() const { return length_; }
  int64_t first() const { return first_; }
  // The end of what is covered so far; the next gap starts here.
  int64_t covered_to() const { return covered_to_; }

 private:
  bool empty_ = true;
  int64_t first_ = 0;
  int64_t covered_to_ = 0;
  int64_t length_ = 0;
};

}  // namespace firstframe

#endif  // LIB_TRACE_INTERVAL_UNION_H_
