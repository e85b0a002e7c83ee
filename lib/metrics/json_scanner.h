// Walks one JSON object of a line in place, without building a tree.
//
// Takes what Python's json.dumps writes: JSON, and the bare tokens NaN,
// Infinity and -Infinity. Errors are sticky: after the first, reads return
// defaults and do nothing, so that callers test once, at the end.
//
//   JsonScanner scan(line);
//   for (auto field = scan.EnterObject(); scan.NextField(field);) {
//     if (field.key == "ts") { scan.ReadDouble(ts); } else { scan.SkipValue();
//     }
//   }
//   scan.ExpectEnd();
//   if (!scan.ok()) return scan.error();

#ifndef LIB_METRICS_JSON_SCANNER_H_
#define LIB_METRICS_JSON_SCANNER_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/metrics/decimal.h"

namespace firstframe {

// Thread-compatible. `line` must outlive the scanner. Behind it must come a
// control character (its line end, or zeros) and then at least kNumberPadding
// readable bytes: what JsonlReader gives.
class JsonScanner {
 public:
  // Iterates the fields of one object.
  struct Fields {
    absl::string_view key;  // as written, escapes and all
    bool is_first = true;
    bool is_object = false;  // false: the value was null
  };

  explicit JsonScanner(absl::string_view line)
      : begin_(line.data()), p_(line.data()), end_(line.data() + line.size()) {}

  bool ok() const { return error_ == nullptr; }
  // What was wrong, and the byte at which it was seen.
  const char* error() const { return error_; }
  size_t position() const { return static_cast<size_t>(p_ - begin_); }

  // Enters an object; null counts as an object without fields.
  Fields EnterObject() {
    Fields fields;
    SkipSpace();
    if (Consume('{')) {
      fields.is_object = true;
    } else if (!ConsumeWord("null")) {
      Fail("expected an object");
    }
    return fields;
  }
  // Moves to the next field's value and returns true, or behind the object.
  bool NextField(Fields& fields) {
    if (!ok() || !fields.is_object) return false;
    SkipSpace();
    if (Consume('}')) return false;
    if (!fields.is_first && !Consume(',')) return Fail("expected ',' or '}'");
    fields.is_first = false;
    SkipSpace();
    if (!Consume('"')) return Fail("expected a key");
    fields.key = ScanString();
    SkipSpace();
    if (!Consume(':')) return Fail("expected ':'");
    SkipSpace();
    return ok();
  }

  // Takes one of two texts when it stands next, and white space behind it. For
  // readers that guess which key comes, as it is written with spaces or
  // without: a hit is a comparison or two, after a miss the methods above go on
  // from where it would have stood. The texts hold no control character.
  template <size_t kSpaced, size_t kCompact>
  bool ConsumeExpected(const char (&spaced)[kSpaced],
                       const char (&compact)[kCompact]) {
    static_assert(kCompact <= kSpaced && kSpaced - 1 <= kNumberPadding);
    if (std::memcmp(p_, spaced, kSpaced - 1) == 0) {
      p_ += kSpaced - 1;
    } else if (std::memcmp(p_, compact, kCompact - 1) == 0) {
      p_ += kCompact - 1;
    } else {
      return false;
    }
    SkipSpace();
    return true;
  }
  // NextField(), when it is `key`; else nothing is read.
  bool NextFieldIs(Fields& fields, absl::string_view key) {
    if (!fields.is_object || (!fields.is_first && *p_ != ',')) return false;
    const char* p = p_ + (fields.is_first ? 0 : 1);
    p += *p == ' ' ? 1 : 0;
    if (end_ - p < static_cast<ptrdiff_t>(key.size() + 3) || *p != '"' ||
        std::memcmp(p + 1, key.data(), key.size()) != 0 ||
        std::memcmp(p + 1 + key.size(), "\":", 2) != 0) {
      return false;
    }
    fields.key = key;
    fields.is_first = false;
    p_ = p + key.size() + 3;
    SkipSpace();
    return true;
  }
  // Back to the start of the line.
  void Restart() {
    p_ = begin_;
    error_ = nullptr;
  }

  // Numbers; null, NaN and infinities leave `out` as it is.
  void ReadDouble(double& out) {
    double value;
    if (ScanNumber(value)) out = value;
  }
  void ReadDouble(std::optional<double>& out) {
    double value;
    if (ScanNumber(value)) out = value;
  }
  // Also takes 2.0, as Python writes some counts.
  void ReadInt(int64_t& out) {
    int64_t value;
    const char* const next = ParseJsonInteger(begin_, p_, value);
    if (next != nullptr && next <= end_) {
      p_ = next;
      out = value;
      return;
    }
    double number;
    if (!ScanNumber(number)) return;
    if (!(number > -9.2e18 && number < 9.2e18)) {
      Fail("number out of range");
      return;
    }
    out = static_cast<int64_t>(number);
  }
  void ReadBool(bool& out) {
    if (ConsumeWord("true")) {
      out = true;
    } else if (ConsumeWord("false")) {
      out = false;
    } else {
      Fail("expected true or false");
    }
  }
  void ReadString(std::string& out);
  // The string as written; empty and an error when the value is none.
  absl::string_view ReadRawString() {
    if (Consume('"')) return ScanString();
    Fail("expected a string");
    return {};
  }
  bool NextIsString() const { return p_ < end_ && *p_ == '"'; }
  void SkipValue() { SkipValue(0); }

  // Nothing but white space may follow.
  void ExpectEnd() {
    SkipSpace();
    if (ok() && p_ != end_) Fail("more after the object");
  }

 private:
  static constexpr int kMaxDepth = 64;

  bool Fail(const char* reason) {
    if (error_ == nullptr) error_ = reason;
    return false;
  }
  void SkipSpace() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) ++p_;
  }
  bool Consume(char c) {
    if (p_ >= end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  bool ConsumeWord(absl::string_view word) {
    if (static_cast<size_t>(end_ - p_) < word.size() ||
        std::memcmp(p_, word.data(), word.size()) != 0) {
      return false;
    }
    p_ += word.size();
    return true;
  }
  // Returns the first quote, backslash or control character from `p` on; the
  // line end or padding behind the line is one at the latest.
  static const char* FindSpecial(const char* p) {
#ifdef __SSE2__
    while (true) {
      const __m128i bytes =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i special = _mm_or_si128(
          _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
          _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes));
      const int mask = _mm_movemask_epi8(special);
      if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
      p += sizeof bytes;
    }
#else
    while (static_cast<unsigned char>(*p) >= 0x20 && *p != '"' && *p != '\\') {
      ++p;
    }
    return p;
#endif
  }
  // Behind the opening quote; returns the text up to the closing one.
  absl::string_view ScanString() {
    const char* const start = p_;
    while (p_ < end_) {
      p_ = FindSpecial(p_);
      if (*p_ != '\\') break;  // a quote, a control character, or past the end
      p_ += 2;
    }
    if (p_ >= end_ || *p_ != '"') {
      p_ = p_ < end_ ? p_ : end_;
      Fail("unterminated string");
      return {};
    }
    const absl::string_view text(start, static_cast<size_t>(p_ - start));
    ++p_;
    return text;
  }
  bool ScanNumber(double& value) {
    const char* const next = ParseJsonNumber(begin_, p_, value);
    if (next != nullptr && next <= end_) {
      p_ = next;
      return true;
    }
    return ScanToken();
  }
  // A number too large or too small for a double counts as not finite.
  bool SkipNumberOutOfRange();
  bool ScanToken() {
    for (const absl::string_view token :
         {absl::string_view("null"), absl::string_view("NaN"),
          absl::string_view("Infinity"), absl::string_view("-Infinity")}) {
      if (ConsumeWord(token)) return false;
    }
    if (!SkipNumberOutOfRange()) Fail("expected a number");
    return false;
  }
  void SkipValue(int depth);

  const char* const begin_;
  const char* p_;
  const char* const end_;
  const char* error_ = nullptr;
};

}  // namespace firstframe

#endif  // LIB_METRICS_JSON_SCANNER_H_
