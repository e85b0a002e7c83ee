// A window over a stream of bytes that grows as far as one item needs.

#ifndef LIB_TRACE_READ_BUFFER_H_
#define LIB_TRACE_READ_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status_macros.h"
#include "lib/trace/byte_source.h"

namespace firstframe {

// Thread-compatible.
class ReadBuffer {
 public:
  // An event larger than this is no event.
  static constexpr size_t kMaxItemBytes = 64 << 20;

  explicit ReadBuffer(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), bytes_(kInitialBytes) {}

  // What is in memory from the current position on.
  absl::string_view data() const {
    return absl::string_view(bytes_.data() + begin_, end_ - begin_);
  }
  const char* begin() const { return bytes_.data() + begin_; }
  const char* end() const { return bytes_.data() + end_; }

  // The position's offset in the stream.
  uint64_t offset() const { return base_ + begin_; }

  // Moves the position to `p`, within data().
  void AdvanceTo(const char* p) { begin_ = p - bytes_.data(); }

  // Reads more behind what is there; false at the end of the stream. Pointers
  // into data() are invalid afterwards. ResourceExhausted when the window would
  // pass kMaxItemBytes.
  absl::StatusOr<bool> Fill() {
    if (at_end_) return false;
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
      base_ += begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == bytes_.size()) {
      if (bytes_.size() >= kMaxItemBytes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("an item at byte ", base_, " is longer than ",
                         kMaxItemBytes, " bytes"));
      }
      bytes_.resize(bytes_.size() * 2);
    }
    FF_ASSIGN_OR_RETURN(const size_t n, source_->Read(bytes_.data() + end_,
                                                      bytes_.size() - end_));
    end_ += n;
    at_end_ = n == 0;
    return n > 0;
  }

  bool truncated() const { return source_->truncated(); }

 private:
  static constexpr size_t kInitialBytes = 1 << 20;

  std::unique_ptr<ByteSource> source_;
  std::vector<char> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t base_ = 0;
  bool at_end_ = false;
};

}  // namespace firstframe

#endif  // LIB_TRACE_READ_BUFFER_H_
