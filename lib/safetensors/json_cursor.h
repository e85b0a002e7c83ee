// A strict JSON reader (RFC 8259) that knows where it stands: every value and
// every mistake has its byte position. For headers and indexes, which are read
// once, front to back; it builds no tree.

#ifndef LIB_SAFETENSORS_JSON_CURSOR_H_
#define LIB_SAFETENSORS_JSON_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// A function that meets a mistake records it in error() and returns false or
// nothing; only the first is kept. Thread-compatible.
class JsonCursor {
 public:
  struct Error {
    uint64_t position = 0;
    std::string found;
    std::string expected;
  };

  // Reads `text`, which must outlive the cursor and be UTF-8; `base` is added
  // to every position.
  JsonCursor(absl::string_view text, uint64_t base)
      : begin_(text.data()),
        next_(text.data()),
        end_(text.data() + text.size()),
        base_(base) {}

  uint64_t position() const { return base_ + (next_ - begin_); }
  bool at_end() const { return next_ == end_; }
  const Error& error() const { return error_; }

  void SkipSpace() {
    while (next_ != end_ && (*next_ == ' ' || *next_ == '\n' ||
                             *next_ == '\t' || *next_ == '\r')) {
      ++next_;
    }
  }

  // Returns whether `c` comes next; does not move.
  bool Sees(char c) const { return next_ != end_ && *next_ == c; }

  // Moves past `c` when it comes next, after white space.
  bool Take(char c) {
    SkipSpace();
    if (!Sees(c)) return false;
    ++next_;
    return true;
  }
  // Like Take, and an error when something else comes.
  bool Expect(char c, absl::string_view expected) {
    return Take(c) || Fail(expected);
  }

  // Reads a string. The view is good for as long as the cursor and its text.
  std::optional<absl::string_view> String(absl::string_view expected);

  // Reads an unsigned integer of at most 64 bits: digits alone, no sign, no
  // fraction, no exponent, no leading zero.
  std::optional<uint64_t> Unsigned(absl::string_view expected);

  // Moves past one value of any kind. `depth` containers are open around it;
  // more than kMaxDepth are an error.
  bool SkipValue(int depth);

  // As serde_json, which the reference reader uses.
  static constexpr int kMaxDepth = 127;

  // Says what comes next: "a string", "'}'", "byte 0x00", "the end".
  std::string DescribeNext() const;

  // Records a mistake at the present position. Always false.
  bool Fail(absl::string_view expected) {
    return FailAt(position(), DescribeNext(), expected);
  }
  bool FailAt(uint64_t position, std::string found, absl::string_view expected);

 private:
  std::optional<absl::string_view> EscapedString(const char* start);
  bool Escape(std::string* text);
  std::optional<uint32_t> HexQuad();
  bool SkipNumber();
  bool SkipWord(absl::string_view word);
  bool SkipContainer(int depth);

  const char* const begin_;
  const char* next_;
  const char* const end_;
  const uint64_t base_;
  std::deque<std::string> unescaped_;  // what String's views point at
  bool failed_ = false;
  Error error_;
};

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_JSON_CURSOR_H_
