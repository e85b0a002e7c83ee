#include "lib/activation/name_map.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// r"TEXT": ("TARGET", 0, 3),   or   r"TEXT": r"TARGET",
constexpr absl::string_view kPythonRule =
    R"re(^r?["'](.*)["']\s*:\s*(\(?)\s*r?["']([^"']*)["']\s*)re"
    R"re((?:,\s*(\d+)\s*,\s*(\d+)\s*)?\)?\s*,?$)re";
// TEXT => TARGET, TEXT => TARGET LABEL, TEXT => TARGET 0/3
constexpr absl::string_view kPlainRule =
    R"re(^(.*\S)\s+=>\s+(\S+)(?:\s+([A-Za-z_\\]\S*))?(?:\s+(\d+)/(\d+))?$)re";

// A map may turn out to be some other file, of one endless line.
std::string Shortened(absl::string_view line) {
  constexpr size_t kShown = 80;
  if (line.size() <= kShown) return std::string(line);
  return absl::StrCat(line.substr(0, kShown), "...");
}

struct RuleText {
  std::string pattern, target, tensor, index, count;
};

absl::StatusOr<RuleText> SplitRule(absl::string_view line) {
  FF_ASSIGN_OR_RETURN(const auto python, CompileRegex(kPythonRule));
  FF_ASSIGN_OR_RETURN(const auto plain, CompileRegex(kPlainRule));
  RuleText text;
  std::string open;
  if (RE2::FullMatch(ToRe2(line), *python, &text.pattern, &open, &text.target,
                     &text.index, &text.count) ||
      RE2::FullMatch(ToRe2(line), *plain, &text.pattern, &text.target,
                     &text.tensor, &text.index, &text.count)) {
    return text;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "found '", Shortened(line),
      "', expected 'PATTERN => TARGET' or 'PATTERN => TARGET I/N'"));
}

}  // namespace

absl::Status NameMap::Add(absl::string_view line) {
  FF_ASSIGN_OR_RETURN(RuleText text, SplitRule(line));
  const bool is_alone = text.pattern == "-";
  if (is_alone) {
    text.pattern = absl::StrCat(
        text.target, text.tensor.empty() ? "" : absl::StrCat(" ", text.tensor));
  }
  Rule rule;
  FF_ASSIGN_OR_RETURN(rule.pattern, CompileRegex(text.pattern));
  rule.has_tensor = absl::StrContains(text.pattern, ' ');
  if (is_alone) {
    alone_.push_back(std::move(rule));
    return absl::OkStatus();
  }
  for (const std::string& target : {text.target, text.tensor}) {
    std::string why;
    if (!rule.pattern->CheckRewriteString(target, &why)) {
      return absl::InvalidArgumentError(
          absl::StrCat("target '", target, "': ", why));
    }
  }
  if (text.target != "-") rule.target = text.target;
  rule.tensor = text.tensor;
  if (!text.index.empty() && (!absl::SimpleAtoi(text.index, &rule.index) ||
                              !absl::SimpleAtoi(text.count, &rule.count) ||
                              rule.count < 1 || rule.index >= rule.count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", text.index, " of ", text.count,
                     ": expected a part below the count"));
  }
  rules_.push_back(std::move(rule));
  return absl::OkStatus();
}

absl::StatusOr<NameMap> NameMap::Parse(absl::string_view text) {
  NameMap map;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line == "{" || line == "}") continue;
    FF_RETURN_IF_ERROR(
        Annotate(map.Add(line), absl::StrCat("map line ", number)));
  }
  return map;
}

std::optional<MappedName> NameMap::Apply(absl::string_view name,
                                         absl::string_view tensor) const {
  const std::string parameter = absl::StrCat(name, ".weight");
  const std::string labelled = absl::StrCat(name, " ", tensor);
  for (const Rule& rule : rules_) {
    const auto try_as =
        [&](absl::string_view subject) -> std::optional<MappedName> {
      if (!SearchRegex(*rule.pattern, subject)) return std::nullopt;
      MappedName mapped{.index = rule.index, .count = rule.count};
      mapped.has_none = rule.target.empty();
      if (mapped.has_none) return mapped;
      mapped.name = std::string(subject);
      if (!RE2::Replace(&mapped.name, *rule.pattern, rule.target)) {
        return std::nullopt;
      }
      if (!rule.tensor.empty()) {
        RE2::Extract(ToRe2(subject), *rule.pattern, rule.tensor,
                     &mapped.tensor);
      }
      return mapped;
    };
    if (rule.has_tensor) {
      if (auto mapped = try_as(labelled)) return mapped;
      continue;
    }
    if (auto mapped = try_as(name)) return mapped;
    if (auto mapped = try_as(parameter)) {
      absl::string_view module = mapped->name;
      absl::ConsumeSuffix(&module, ".weight");
      mapped->name = std::string(module);
      return mapped;
    }
  }
  return std::nullopt;
}

bool NameMap::IsTargetAlone(absl::string_view name,
                            absl::string_view tensor) const {
  for (const Rule& rule : alone_) {
    const std::string subject =
        rule.has_tensor ? absl::StrCat(name, " ", tensor) : std::string(name);
    if (SearchRegex(*rule.pattern, subject)) return true;
  }
  return false;
}

}  // namespace firstframe
