#include "lib/cli/help.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace firstframe::cli {
namespace {

std::string Usage(const Tool& tool) {
  return absl::StrCat(tool.name, " [flags]", tool.arguments.empty() ? "" : " ",
                      tool.arguments);
}

std::string Spelling(const Flag& flag) {
  return flag.placeholder.empty()
             ? absl::StrCat("--", flag.name)
             : absl::StrCat("--", flag.name, "=", flag.placeholder);
}

// The help with its default, where the default says something.
std::string HelpWithDefault(const Flag& flag) {
  if (flag.default_value.empty() ||
      (flag.is_bool && flag.default_value == "false")) {
    return flag.help;
  }
  return absl::StrCat(flag.help, " (default ", flag.default_value, ")");
}

std::vector<ExitMeaning> Exits(const Tool& tool) {
  std::vector<ExitMeaning> exits = {
      {Exit::kOk, "done"},
      {Exit::kFinding, "ran, and the answer is no"},
      {Exit::kTrouble,
       "wrong usage, unreadable or malformed input, or output "
       "that could not be written"},
      {Exit::kUnavailable,
       "needs a device, a library or a build that is not "
       "here"},
  };
  for (const ExitMeaning& own : tool.exits) {
    exits[static_cast<int>(own.exit)].meaning = own.meaning;
  }
  return exits;
}

std::string RoffEscape(absl::string_view text) {
  std::string escaped =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) {
    escaped.insert(0, "\\&");
  }
  return absl::StrReplaceAll(escaped, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
}

std::string MarkdownCell(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"|", "\\|"}, {"\n", " "}, {"<", "&lt;"}, {">", "&gt;"}});
}

}  // namespace

std::string WrapText(absl::string_view text, int indent, int columns) {
  std::string out;
  const std::string margin(indent, ' ');
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string row;
    for (const absl::string_view word :
         absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (!row.empty() && indent + row.size() + 1 + word.size() >
                              static_cast<size_t>(columns)) {
        absl::StrAppend(&out, margin, row, "\n");
        row.clear();
      }
      absl::StrAppend(&row, row.empty() ? "" : " ", word);
    }
    absl::StrAppend(&out, row.empty() ? "" : margin, row, "\n");
  }
  return out;
}

std::string RenderHelp(const Tool& tool, const FlagTable& table) {
  std::string out = WrapText(tool.summary, 0);
  absl::StrAppend(&out, "\nUsage: ", Usage(tool), "\n");
  if (!tool.description.empty()) {
    absl::StrAppend(&out, "\n", WrapText(tool.description, 0));
  }
  for (const FlagSection& section : table.sections) {
    absl::StrAppend(&out, "\n", section.title, ":\n");
    for (const Flag& flag : section.flags) {
      absl::StrAppend(&out, "  ", Spelling(flag), "\n",
                      WrapText(HelpWithDefault(flag), 6));
    }
  }
  if (!tool.environment.empty()) {
    absl::StrAppend(&out, "\nEnvironment (a flag wins over its variable):\n");
    for (const EnvironmentVariable& variable : tool.environment) {
      absl::StrAppend(&out, "  ", variable.name, "\n",
                      WrapText(variable.meaning, 6));
    }
  }
  absl::StrAppend(&out, "\nExit status:\n");
  for (const ExitMeaning& row : Exits(tool)) {
    const std::string text = WrapText(row.meaning, 5);
    absl::StrAppend(&out, "  ", static_cast<int>(row.exit), "  ",
                    text.substr(5));
  }
  if (!tool.examples.empty()) {
    absl::StrAppend(&out, "\nExamples:\n");
    for (const Example& example : tool.examples) {
      absl::StrAppend(&out, "  ", example.command, "\n",
                      WrapText(example.what, 6));
    }
  }
  return out;
}

std::string RenderMan(const Tool& tool, const FlagTable& table) {
  std::string out = absl::StrCat(
      ".TH ", tool.name, " 1 \"\" firstframe \"Firstframe manual\"\n.SH NAME\n",
      tool.name, " \\- ", RoffEscape(tool.summary), "\n.SH SYNOPSIS\n",
      RoffEscape(Usage(tool)), "\n");
  if (!tool.description.empty()) {
    absl::StrAppend(&out, ".SH DESCRIPTION\n",
                    absl::StrReplaceAll(RoffEscape(tool.description),
                                        {{"\n\n", "\n.PP\n"}}),
                    "\n");
  }
  absl::StrAppend(&out, ".SH OPTIONS\n");
  for (const FlagSection& section : table.sections) {
    absl::StrAppend(&out, ".SS ", RoffEscape(section.title), "\n");
    for (const Flag& flag : section.flags) {
      absl::StrAppend(&out, ".TP\n.B ", RoffEscape(Spelling(flag)), "\n",
                      RoffEscape(HelpWithDefault(flag)), "\n");
    }
  }
  if (!tool.environment.empty()) {
    absl::StrAppend(&out, ".SH ENVIRONMENT\n");
    for (const EnvironmentVariable& variable : tool.environment) {
      absl::StrAppend(&out, ".TP\n.B ", RoffEscape(variable.name), "\n",
                      RoffEscape(variable.meaning), "\n");
    }
  }
  absl::StrAppend(&out, ".SH \"EXIT STATUS\"\n");
  for (const ExitMeaning& row : Exits(tool)) {
    absl::StrAppend(&out, ".TP\n.B ", static_cast<int>(row.exit), "\n",
                    RoffEscape(row.meaning), "\n");
  }
  if (!tool.examples.empty()) {
    absl::StrAppend(&out, ".SH EXAMPLES\n");
    for (const Example& example : tool.examples) {
      absl::StrAppend(&out, ".TP\n.B ", RoffEscape(example.command), "\n",
                      RoffEscape(example.what), "\n");
    }
  }
  return out;
}

std::string RenderMarkdown(const Tool& tool, const FlagTable& table) {
  std::string out = absl::StrCat("# ", tool.name, "\n\n", tool.summary,
                                 "\n\n```\n", Usage(tool), "\n```\n");
  if (!tool.description.empty())
    absl::StrAppend(&out, "\n", tool.description, "\n");
  if (!tool.examples.empty()) {
    absl::StrAppend(&out, "\n## Examples\n\n");
    for (const Example& example : tool.examples) {
      absl::StrAppend(&out, "- `", example.command, "`: ", example.what, "\n");
    }
  }
  for (const FlagSection& section : table.sections) {
    absl::StrAppend(&out, "\n## ", section.title,
                    "\n\n| flag | default | meaning |\n|---|---|---|\n");
    for (const Flag& flag : section.flags) {
      const std::string shown =
          flag.default_value.empty()
              ? ""
              : absl::StrCat("`", flag.default_value, "`");
      absl::StrAppend(
          &out, "| `--", flag.name,
          flag.placeholder.empty()
              ? ""
              : absl::StrCat(
                    "=", absl::StrReplaceAll(flag.placeholder, {{"|", "\\|"}})),
          "` | ", shown, " | ", MarkdownCell(flag.help), " |\n");
    }
  }
  if (!tool.environment.empty()) {
    absl::StrAppend(&out,
                    "\n## Environment\n\nA flag wins over its variable.\n\n"
                    "| variable | meaning |\n|---|---|\n");
    for (const EnvironmentVariable& variable : tool.environment) {
      absl::StrAppend(&out, "| `", variable.name, "` | ",
                      MarkdownCell(variable.meaning), " |\n");
    }
  }
  absl::StrAppend(&out, "\n## Exit status\n\n| code | meaning |\n|---|---|\n");
  for (const ExitMeaning& row : Exits(tool)) {
    absl::StrAppend(&out, "| ", static_cast<int>(row.exit), " | ",
                    MarkdownCell(row.meaning), " |\n");
  }
  return out;
}

std::string RenderBash(const Tool& tool, const FlagTable& table) {
  std::vector<std::string> words;
  std::string cases;
  for (const FlagSection& section : table.sections) {
    for (const Flag& flag : section.flags) {
      words.push_back(absl::StrCat("--", flag.name, flag.is_bool ? "" : "="));
      if (flag.choices.empty()) continue;
      absl::StrAppend(
          &cases, "    --", flag.name, ") COMPREPLY=($(compgen -W '",
          absl::StrJoin(flag.choices, " "), "' -- \"$value\")); return ;;\n");
    }
  }
  const std::string function = absl::StrCat("_firstframe_", tool.name);
  // Bash splits words at '=', so a flag's value is a word of its own.
  return absl::StrCat(
      "# bash completion for ", tool.name, "\n", function,
      "() {\n"
      "  local value=\"${COMP_WORDS[COMP_CWORD]}\" flag=\"\"\n"
      "  if [ \"$value\" = \"=\" ]; then\n"
      "    value=\"\"; flag=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  elif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = \"=\" ]; then\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
      "  else\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  fi\n"
      "  case \"$flag\" in\n",
      cases,
      "  esac\n"
      "  case \"$value\" in\n"
      "    -*) COMPREPLY=($(compgen -W '",
      absl::StrJoin(words, " "),
      "' -- \"$value\"))\n"
      "        [[ \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$value\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F ",
      function, " ", tool.name, "\n");
}

}  // namespace firstframe::cli
