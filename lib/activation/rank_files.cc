#include "lib/activation/rank_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Runs of digits compare as numbers.
bool ComesBefore(absl::string_view a, absl::string_view b) {
  size_t i = 0, j = 0;
  const auto number = [](absl::string_view text, size_t* at) {
    while (*at < text.size() && text[*at] == '0') ++*at;
    const size_t begin = *at;
    while (*at < text.size() && absl::ascii_isdigit(text[*at])) ++*at;
    return text.substr(begin, *at - begin);
  };
  while (i < a.size() && j < b.size()) {
    if (absl::ascii_isdigit(a[i]) && absl::ascii_isdigit(b[j])) {
      const absl::string_view x = number(a, &i), y = number(b, &j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

std::string WithRank(absl::string_view text, int rank) {
  constexpr absl::string_view kRecord = "{\"module\":";
  const std::string key = absl::StrCat("{\"rank\": ", rank, ", ");
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    // The last rank said would count; a name may hold anything, but not this.
    if (absl::StartsWith(line, kRecord) &&
        !absl::StrContains(line, "\"rank\":")) {
      absl::StrAppend(&out, key, line.substr(1));
    } else {
      absl::StrAppend(&out, line);
    }
    if (!absl::EndsWith(line, "\n")) out.push_back('\n');
  }
  return out;
}

absl::StatusOr<TraceInput> OpenRankFiles(std::vector<std::string> paths,
                                         const std::string& name) {
  std::sort(paths.begin(), paths.end(), ComesBefore);
  std::string text;
  for (size_t i = 0; i < paths.size(); ++i) {
    FF_ASSIGN_OR_RETURN(const TraceInput input, TraceInput::Open(paths[i]));
    text += WithRank(input.text(), static_cast<int>(i));
  }
  return TraceInput::FromString(std::move(text), name);
}

}  // namespace firstframe
