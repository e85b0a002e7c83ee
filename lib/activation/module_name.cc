#include "lib/activation/module_name.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr std::array<absl::string_view, 4> kWrappers = {
    "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
    "base_layer"};

bool IsNumber(absl::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return absl::ascii_isdigit(c);
  });
}

// "[3]" becomes ".3", "/" becomes ".".
std::string Dotted(absl::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '/') {
      out.push_back('.');
    } else if (name[i] == '[') {
      const size_t close = name.find(']', i);
      if (close != absl::string_view::npos &&
          IsNumber(name.substr(i + 1, close - i - 1))) {
        absl::StrAppend(&out, ".", name.substr(i + 1, close - i - 1));
        i = close;
      } else {
        out.push_back('[');
      }
    } else {
      out.push_back(name[i]);
    }
  }
  return out;
}

// r"TEXT": ("TARGET", 0, 3),   or   r"TEXT": r"TARGET",
constexpr absl::string_view kPythonRule =
    R"re(^r?["'](.*)["']\s*:\s*(\(?)\s*r?["']([^"']*)["']\s*)re"
    R"re((?:,\s*(\d+)\s*,\s*(\d+)\s*)?\)?\s*,?$)re";
// TEXT => TARGET   or   TEXT => TARGET 0/3
constexpr absl::string_view kPlainRule =
    R"re(^(.*\S)\s+=>\s+(\S+)(?:\s+(\d+)/(\d+))?$)re";

}  // namespace

std::string CanonicalModule(absl::string_view name) {
  const std::string dotted = Dotted(name);
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(dotted, '.')) {
    const bool leads = parts.empty();
    if (std::find(kWrappers.begin(), kWrappers.end(), part) !=
            kWrappers.end() ||
        (leads && (part == "module" || part.empty()))) {
      continue;
    }
    parts.push_back(part);
  }
  if (parts.size() > 1 && !parts[0].empty() &&
      absl::ascii_isupper(parts[0][0])) {
    parts.erase(parts.begin());
  }
  return absl::StrJoin(parts, ".");
}

std::string ModuleTemplate(absl::string_view name) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    parts.push_back(IsNumber(part) ? "*" : part);
  }
  return absl::StrJoin(parts, ".");
}

std::string LeafTemplate(absl::string_view name) {
  const std::string whole = ModuleTemplate(name);
  const std::vector<absl::string_view> parts = absl::StrSplit(whole, '.');
  size_t i = parts.size();
  while (i > 0 && parts[i - 1] == "*") --i;
  if (i == 0) return whole;
  return absl::StrJoin(parts.begin() + (i - 1), parts.end(), ".");
}

// A map may turn out to be some other file, of one endless line.
static std::string Shortened(absl::string_view line) {
  constexpr size_t kShown = 80;
  if (line.size() <= kShown) return std::string(line);
  return absl::StrCat(line.substr(0, kShown), "...");
}

absl::StatusOr<NameMap> NameMap::Parse(absl::string_view text) {
  FF_ASSIGN_OR_RETURN(const auto python, CompileRegex(kPythonRule));
  FF_ASSIGN_OR_RETURN(const auto plain, CompileRegex(kPlainRule));
  NameMap map;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line == "{" || line == "}") continue;
    std::string pattern, open, target, index, count;
    if (!RE2::FullMatch(ToRe2(line), *python, &pattern, &open, &target, &index,
                        &count) &&
        !RE2::FullMatch(ToRe2(line), *plain, &pattern, &target, &index,
                        &count)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "map line ", number, ": found '", Shortened(line),
          "', expected 'PATTERN => TARGET' or 'PATTERN => TARGET I/N'"));
    }
    Rule rule;
    auto compiled = CompileRegex(pattern);
    if (!compiled.ok()) {
      return Annotate(compiled.status(), absl::StrCat("map line ", number));
    }
    rule.pattern = *std::move(compiled);
    std::string why;
    if (!rule.pattern->CheckRewriteString(target, &why)) {
      return absl::InvalidArgumentError(
          absl::StrCat("map line ", number, ": target '", target, "': ", why));
    }
    rule.target = target;
    if (!index.empty() && (!absl::SimpleAtoi(index, &rule.index) ||
                           !absl::SimpleAtoi(count, &rule.count) ||
                           rule.count < 1 || rule.index >= rule.count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("map line ", number, ": part ", index, " of ", count,
                       ": expected a part below the count"));
    }
    map.rules_.push_back(std::move(rule));
  }
  return map;
}

std::optional<MappedName> NameMap::Apply(absl::string_view name) const {
  const std::string parameter = absl::StrCat(name, ".weight");
  for (const Rule& rule : rules_) {
    for (const absl::string_view subject :
         {name, absl::string_view(parameter)}) {
      std::string out(subject);
      if (!SearchRegex(*rule.pattern, subject) ||
          !RE2::Replace(&out, *rule.pattern, rule.target)) {
        continue;
      }
      absl::string_view mapped = out;
      if (subject.size() != name.size())
        absl::ConsumeSuffix(&mapped, ".weight");
      return MappedName{std::string(mapped), rule.index, rule.count};
    }
  }
  return std::nullopt;
}

}  // namespace firstframe
