#include "lib/metrics/json_scanner.h"

#include <charconv>

#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// The four hex digits at `p`, or -1.
int32_t Hex4(const char* p) {
  uint32_t value = 0;
  const auto [next, code] = std::from_chars(p, p + 4, value, 16);
  return code == std::errc() && next == p + 4 ? static_cast<int32_t>(value)
                                              : -1;
}

}  // namespace

bool JsonScanner::SkipNumberOutOfRange() {
  double ignored;
  const auto [next, code] = std::from_chars(p_, end_, ignored);
  if (code != std::errc::result_out_of_range) return false;
  p_ = next;
  return true;
}

void JsonScanner::ReadString(std::string& out) {
  const absl::string_view raw = ReadRawString();
  if (raw.find('\\') == raw.npos) {
    out.assign(raw.data(), raw.size());
    return;
  }
  out.clear();
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out.push_back(raw[i]);
      continue;
    }
    constexpr absl::string_view kNames = "\"\\/bfnrt";
    constexpr absl::string_view kValues = "\"\\/\b\f\n\r\t";
    const char c = raw[++i];
    if (const size_t at = kNames.find(c); at != absl::string_view::npos) {
      out.push_back(kValues[at]);
      continue;
    }
    int32_t code = c == 'u' && i + 4 < raw.size() ? Hex4(&raw[i + 1]) : -1;
    if (code < 0) {
      Fail("unknown escape");
      return;
    }
    i += 4;
    const bool is_high = code >= 0xD800 && code < 0xDC00;
    if (is_high && i + 6 < raw.size() && raw[i + 1] == '\\' &&
        raw[i + 2] == 'u') {
      const int32_t low = Hex4(&raw[i + 3]);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
    }
    // A surrogate on its own stands for no character.
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    AppendUtf8(static_cast<uint32_t>(code), &out);
  }
}

void JsonScanner::SkipValue(int depth) {
  if (!ok()) return;
  if (depth > kMaxDepth) {
    Fail("nested too deeply");
    return;
  }
  SkipSpace();
  if (p_ >= end_) {
    Fail("expected a value");
  } else if (*p_ == '"') {
    ++p_;
    ScanString();
  } else if (*p_ == '{') {
    for (Fields fields = EnterObject(); NextField(fields);) {
      SkipValue(depth + 1);
    }
  } else if (*p_ == '[') {
    ++p_;
    SkipSpace();
    if (Consume(']')) return;
    while (ok()) {
      SkipValue(depth + 1);
      SkipSpace();
      if (Consume(']')) return;
      if (!Consume(',')) Fail("expected ',' or ']'");
    }
  } else if (!ConsumeWord("true") && !ConsumeWord("false")) {
    double ignored;
    ScanNumber(ignored);
  }
}

}  // namespace firstframe
