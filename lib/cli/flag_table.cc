#include "lib/cli/flag_table.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "lib/base/check.h"
#include "lib/base/edit_distance.h"
#include "lib/base/status_macros.h"

namespace firstframe::cli {
namespace {

std::string Placeholder(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "";
  if (flag.IsOfType<double>() || flag.IsOfType<float>()) return "X";
  if (flag.IsOfType<int>() || flag.IsOfType<int64_t>() ||
      flag.IsOfType<uint32_t>() || flag.IsOfType<uint64_t>()) {
    return "N";
  }
  const absl::string_view name = flag.Name();
  if (absl::EndsWith(name, "path") || absl::EndsWith(name, "dir")) return "DIR";
  return "VALUE";
}

// Help that begins with "{WORD} " names its own placeholder.
void TakePlaceholderFromHelp(Flag* flag) {
  if (flag->help.empty() || flag->help[0] != '{') return;
  const size_t end = flag->help.find("} ");
  FF_CHECK(end != std::string::npos);
  flag->placeholder = flag->help.substr(1, end - 1);
  flag->help.erase(0, end + 2);
}

Flag FromAbsl(absl::CommandLineFlag* absl_flag) {
  Flag flag;
  flag.name = std::string(absl_flag->Name());
  flag.help = absl_flag->Help();
  flag.default_value = absl_flag->DefaultValue();
  flag.placeholder = Placeholder(*absl_flag);
  flag.is_bool = absl_flag->IsOfType<bool>();
  flag.set = [absl_flag](absl::string_view value) {
    std::string error;
    if (absl_flag->ParseFrom(value, &error)) return absl::OkStatus();
    return UsageError(absl::StrCat(
        "flag --", absl_flag->Name(), ": '", value, "' is not ",
        absl_flag->IsOfType<bool>() ? "true or false"
        : absl_flag->IsOfType<double>() || absl_flag->IsOfType<float>()
            ? "a number"
        : Placeholder(*absl_flag) == "N" ? "an integer in range"
                                         : "a valid value"));
  };
  TakePlaceholderFromHelp(&flag);
  return flag;
}

Flag BoolFlag(std::string name, std::string help, bool* value) {
  return {
      .name = std::move(name),
      .help = std::move(help),
      .default_value = "false",
      .placeholder = "",
      .choices = {},
      .is_bool = true,
      .set = [value](absl::string_view text) {
        if (text != "true" && text != "false") {
          return UsageError(absl::StrCat("'", text, "' is not true or false"));
        }
        *value = text == "true";
        return absl::OkStatus();
      }};
}

Flag StringFlag(std::string name, std::string help, std::string placeholder,
                std::string* value) {
  return {.name = std::move(name),
          .help = std::move(help),
          .default_value = *value,
          .placeholder = std::move(placeholder),
          .choices = {},
          .is_bool = false,
          .set = [value](absl::string_view text) {
            *value = std::string(text);
            return absl::OkStatus();
          }};
}

Flag WithChoices(Flag flag, std::vector<std::string> choices) {
  flag.placeholder = absl::StrJoin(choices, "|");
  flag.choices = std::move(choices);
  return flag;
}

FlagSection CommonSection(const Tool& tool, CommonFlags* common) {
  FlagSection section = {.title = "Output and help", .flags = {}};
  if (!tool.formats.empty()) {
    common->format = tool.formats[0];
    std::vector<std::string> names;
    for (const Format format : tool.formats) {
      names.emplace_back(FormatName(format));
    }
    Flag flag = {.name = "format",
                 .help = "Form of the result.",
                 .default_value = names[0],
                 .placeholder = "",
                 .choices = {},
                 .is_bool = false,
                 .set = [common, formats = tool.formats](absl::string_view v) {
                   for (const Format format : formats) {
                     if (FormatName(format) == v) common->format = format;
                   }
                   return absl::OkStatus();
                 }};
    section.flags.push_back(WithChoices(std::move(flag), std::move(names)));
  }
  if (tool.has_output) {
    section.flags.push_back(
        StringFlag("output", "File for the result; '-' is standard output.",
                   "FILE", &common->output));
  }
  if (tool.has_color) {
    section.flags.push_back(WithChoices(
        StringFlag("color",
                   "Colours; auto: on a terminal, unless NO_COLOR is set or "
                   "TERM is dumb.",
                   "", &common->color),
        {"auto", "always", "never"}));
  }
  section.flags.push_back(
      BoolFlag("quiet", "No messages and no progress on standard error (-q).",
               &common->quiet));
  section.flags.push_back(
      BoolFlag("help", "Show this help and exit (-h).", &common->help));
  section.flags.push_back(
      BoolFlag("version", "Show version, commit and CUDA toolkit, and exit.",
               &common->version));
  section.flags.push_back(WithChoices(
      StringFlag("generate",
                 "Write a completion script or a manual page, and exit.", "",
                 &common->generate),
      {"bash", "man", "markdown"}));
  return section;
}

bool LooksLikeFlag(absl::string_view word) {
  return word.size() > 1 && word[0] == '-' && !absl::ascii_isdigit(word[1]) &&
         word[1] != '.';
}

}  // namespace

absl::string_view FormatName(Format format) {
  switch (format) {
    case Format::kText:
      return "text";
    case Format::kJson:
      return "json";
    case Format::kJsonl:
      return "jsonl";
    case Format::kHtml:
      return "html";
    case Format::kCsv:
      return "csv";
    case Format::kGithub:
      return "github";
    case Format::kLog:
      return "log";
  }
  return "";
}

const Flag* FlagTable::Find(absl::string_view name) const {
  for (const FlagSection& section : sections) {
    for (const Flag& flag : section.flags) {
      if (flag.name == name) return &flag;
    }
  }
  return nullptr;
}

std::vector<std::string> FlagTable::Names() const {
  std::vector<std::string> names;
  for (const FlagSection& section : sections) {
    for (const Flag& flag : section.flags) names.push_back(flag.name);
  }
  return names;
}

FlagTable BuildFlagTable(const Tool& tool, CommonFlags* common) {
  // Sorted by name, so that every listing has a stable order.
  std::map<std::string, Flag> own;
  const std::string source = absl::StrCat("tools/", tool.name, ".cc");
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), source)) {
      own[std::string(name)] = FromAbsl(flag);
    }
  }
  for (const FlagChoices& choices : tool.choices) {
    const auto it = own.find(choices.flag);
    FF_CHECK(it != own.end());
    it->second = WithChoices(std::move(it->second), choices.values);
  }
  FlagTable table;
  for (const FlagGroup& group : tool.groups) {
    FlagSection section = {.title = group.title, .flags = {}};
    for (const std::string& name : group.flags) {
      const auto it = own.find(name);
      FF_CHECK(it != own.end());
      section.flags.push_back(std::move(it->second));
      own.erase(it);
    }
    table.sections.push_back(std::move(section));
  }
  if (!own.empty()) {
    FlagSection section = {.title = tool.groups.empty() ? "Flags" : "Other",
                           .flags = {}};
    for (auto& [name, flag] : own) section.flags.push_back(std::move(flag));
    table.sections.push_back(std::move(section));
  }
  table.sections.push_back(CommonSection(tool, common));
  return table;
}

absl::StatusOr<Arguments> ParseFlags(const FlagTable& table,
                                     const std::vector<std::string>& words,
                                     std::vector<std::string>* given) {
  Arguments rest;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (word == "--") {
      rest.insert(rest.end(), words.begin() + i + 1, words.end());
      break;
    }
    if (!LooksLikeFlag(word)) {
      rest.emplace_back(word);
      continue;
    }
    if (word == "-h") word = "--help";
    if (word == "-q") word = "--quiet";
    if (!absl::ConsumePrefix(&word, "--")) {
      return UsageError(absl::StrCat("unknown flag ", words[i]));
    }
    const size_t equals = word.find('=');
    const std::string name =
        absl::StrReplaceAll(word.substr(0, equals), {{"-", "_"}});
    const Flag* flag = table.Find(name);
    bool is_negated = false;
    if (flag == nullptr && absl::StartsWith(name, "no")) {
      flag = table.Find(name.substr(2));
      if (flag != nullptr && !flag->is_bool) flag = nullptr;
      is_negated = flag != nullptr;
    }
    if (flag == nullptr) {
      const auto nearest = NearestName(name, table.Names());
      return UsageError(absl::StrCat(
          "unknown flag --", word.substr(0, equals),
          nearest ? absl::StrCat("; did you mean --", *nearest, "?") : ""));
    }
    std::string value;
    if (equals != absl::string_view::npos) {
      if (is_negated) {
        return UsageError(absl::StrCat("flag --", name, " takes no value"));
      }
      value = std::string(word.substr(equals + 1));
    } else if (flag->is_bool) {
      value = is_negated ? "false" : "true";
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return UsageError(absl::StrCat("flag --", name, " needs a value"));
    }
    if (!flag->choices.empty() &&
        std::find(flag->choices.begin(), flag->choices.end(), value) ==
            flag->choices.end()) {
      const auto nearest = NearestName(value, flag->choices);
      return UsageError(absl::StrCat(
          "flag --", name, ": '", value, "' is not one of ",
          absl::StrJoin(flag->choices, ", "),
          nearest ? absl::StrCat("; did you mean ", *nearest, "?") : ""));
    }
    FF_RETURN_IF_ERROR(flag->set(value));
    given->push_back(flag->name);
  }
  return rest;
}

}  // namespace firstframe::cli
