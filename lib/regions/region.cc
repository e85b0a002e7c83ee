#include "lib/regions/region.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/utf8.h"

namespace firstframe {

std::string ShortRegionName(absl::string_view spelling) {
  spelling = absl::StripAsciiWhitespace(spelling);
  std::string lower = absl::AsciiStrToLower(spelling);
  absl::string_view name = lower;
  absl::ConsumePrefix(&name, kRegionSpanPrefix);
  absl::ConsumePrefix(&name, kRegionLongPrefix);
  return std::string(name);
}

std::string RegionSpanName(absl::string_view spelling) {
  return absl::StrCat(kRegionSpanPrefix, ShortRegionName(spelling));
}

absl::Status ValidateRegionName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("region name is empty");
  }
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("region name '", name, "': ", what));
  };
  if (FindInvalidUtf8(name) != name.size()) return invalid("not UTF-8");
  if (name[0] == '-') return invalid("starts with '-'");
  for (const char c : name) {
    if (absl::ascii_isupper(c)) return invalid("expected lower case");
    if (absl::ascii_isspace(c) || absl::ascii_iscntrl(c)) {
      return invalid("holds white space or a control character");
    }
    if (absl::StrContains(",*?[]!\"'", absl::string_view(&c, 1))) {
      return invalid(absl::StrCat("holds '", absl::string_view(&c, 1), "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace firstframe
