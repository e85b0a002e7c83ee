#include "lib/activation/json_walk.h"

#include "absl/strings/str_cat.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/number.h"
#include "lib/base/status_macros.h"

namespace firstframe::json_scan {
namespace {

absl::Status Malformed(absl::string_view text, const char* p,
                       absl::string_view expected) {
  return absl::DataLossError(
      absl::StrCat("byte ", p == nullptr ? text.size() : p - text.data(),
                   ": expected ", expected));
}

// Walks "a, b, c" up to `close`; `item` reads one and returns what is behind.
template <typename Item>
absl::Status Walk(absl::string_view text, char open, char close, Item item) {
  const char* const end = text.data() + text.size();
  const char* p = SkipSpace(text.data(), end);
  if (p >= end || *p != open) {
    return Malformed(text, p, absl::string_view(&open, 1));
  }
  p = SkipSpace(p + 1, end);
  if (p < end && *p == close) return absl::OkStatus();
  while (true) {
    absl::StatusOr<const char*> behind = item(p, end);
    if (!behind.ok()) return behind.status();
    p = SkipSpace(*behind, end);
    if (p < end && *p == close) return absl::OkStatus();
    if (p >= end || *p != ',') return Malformed(text, p, "',' or an end");
    p = SkipSpace(p + 1, end);
  }
}

}  // namespace

absl::Status ForEachMember(
    absl::string_view object,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)>
        visit) {
  return Walk(
      object, '{', '}',
      [&](const char* p, const char* end) -> absl::StatusOr<const char*> {
        const char* const key_end = SkipString(p, end);
        if (key_end == nullptr) return Malformed(object, p, "a key");
        const absl::string_view key(p + 1, key_end - p - 2);
        p = SkipSpace(key_end, end);
        if (p >= end || *p != ':') return Malformed(object, p, "':'");
        p = SkipSpace(p + 1, end);
        const char* const behind = SkipValue(p, end);
        if (behind == nullptr) return Malformed(object, p, "a value");
        FF_RETURN_IF_ERROR(visit(key, absl::string_view(p, behind - p)));
        return behind;
      });
}

absl::Status ForEachElement(
    absl::string_view array,
    absl::FunctionRef<absl::Status(absl::string_view)> visit) {
  return Walk(
      array, '[', ']',
      [&](const char* p, const char* end) -> absl::StatusOr<const char*> {
        const char* const behind = SkipValue(p, end);
        if (behind == nullptr) return Malformed(array, p, "a value");
        FF_RETURN_IF_ERROR(visit(absl::string_view(p, behind - p)));
        return behind;
      });
}

std::optional<absl::string_view> FindMember(absl::string_view object,
                                            absl::string_view key) {
  std::optional<absl::string_view> found;
  ForEachMember(object, [&](absl::string_view name, absl::string_view value) {
    if (name == key) found = value;
    return absl::OkStatus();
  }).IgnoreError();
  return found;
}

std::optional<double> ReadNumber(absl::string_view value) {
  const char* const end = value.data() + value.size();
  if (value.empty() || SkipNumber(value.data(), end) != end) {
    return std::nullopt;
  }
  return ReadDouble(value);
}

}  // namespace firstframe::json_scan
