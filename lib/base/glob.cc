#include "lib/base/glob.h"

#include <cstddef>

namespace firstframe {
namespace {

// Matches `c` against the class that starts at pattern[at] == '['. Sets *next
// to the position after the class, or to 0 when there is no closing bracket.
bool MatchClass(absl::string_view pattern, size_t at, char c, size_t* next) {
  size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  const size_t first = i;
  bool matched = false;
  for (; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    const auto low = static_cast<unsigned char>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' &&
        pattern[i + 2] != ']') {
      high = static_cast<unsigned char>(pattern[i + 2]);
      i += 2;
    }
    const auto byte = static_cast<unsigned char>(c);
    matched = matched || (low <= byte && byte <= high);
  }
  *next = i < pattern.size() ? i + 1 : 0;
  return matched != negated;
}

}  // namespace

bool GlobMatch(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  // Where to resume when a later character fails: only the last '*' matters.
  size_t star = absl::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[') {
      size_t next = 0;
      const bool matched = MatchClass(pattern, p, text[t], &next);
      if (next != 0 ? matched : text[t] == '[') {
        p = next != 0 ? next : p + 1;
        ++t;
        continue;
      }
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
      continue;
    }
    if (star == absl::string_view::npos) return false;
    p = star + 1;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsGlob(absl::string_view text) {
  return text.find_first_of("*?[") != absl::string_view::npos;
}

}  // namespace firstframe
