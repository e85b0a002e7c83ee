#include "lib/testing/html_page.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/testing/temp_dir.h"
#include "re2/re2.h"

namespace firstframe::testing {
namespace {

const char* FindChromium() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome"}) {
    if (std::FILE* file = std::fopen(path, "r"); file != nullptr) {
      std::fclose(file);
      return path;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> ExternalReferences(absl::string_view html) {
  static const RE2 kPattern(
      R"re((?i)(<a\b[^>]*>)|((?:\b(?:src|href|action|srcset)\s*=\s*["']?|\burl\(\s*["']?|@import\s+["']?|\bfetch\(\s*["'`]|\bimport\(\s*["'`]|\bnew\s+(?:WebSocket|Worker)\(\s*["'`])([^"'`)\s>]*)))re");
  std::vector<std::string> found;
  re2::StringPiece rest(html.data(), html.size());
  re2::StringPiece anchor, whole, target;
  while (RE2::FindAndConsume(&rest, kPattern, &anchor, &whole, &target)) {
    if (whole.empty() || target.empty()) continue;
    const absl::string_view view(target.data(), target.size());
    if (absl::StartsWith(view, "data:") || absl::StartsWith(view, "#"))
      continue;
    // Text that a script puts together, not a target.
    if (absl::StartsWith(view, "${")) continue;
    found.emplace_back(whole.data(), whole.size());
  }
  return found;
}

std::optional<HtmlPage> LoadHtmlPage(const std::string& path) {
  const char* chromium = FindChromium();
  if (chromium == nullptr) return std::nullopt;
  const TempDir scratch;
  const std::string dom = scratch.File("dom.html");
  const std::string log = scratch.File("log.txt");
  // Virtual time lets timers and animation frames of two seconds run at once.
  const std::string command = absl::StrCat(
      "HOME='", scratch.path(), "' timeout 60 ", chromium,
      " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
      " --enable-logging=stderr --virtual-time-budget=2000 --dump-dom"
      " --user-data-dir='",
      scratch.path(), "/profile' 'file://", path, "' >'", dom, "' 2>'", log,
      "'");
  if (const int status = std::system(command.c_str()); status != 0) {
    std::fprintf(stderr, "%s: chromium failed (%d):\n%s\n", path.c_str(),
                 WEXITSTATUS(status), ReadFile(log).c_str());
    std::abort();
  }
  HtmlPage page = {.dom = ReadFile(dom)};
  const std::string messages = ReadFile(log);
  for (const absl::string_view line : absl::StrSplit(messages, '\n')) {
    if (absl::StrContains(line, ":CONSOLE")) {
      page.problems.push_back(absl::StrCat("console: ", line));
    }
  }
  for (const std::string& reference : ExternalReferences(ReadFile(path))) {
    page.problems.push_back(absl::StrCat("external reference: ", reference));
  }
  return page;
}

}  // namespace firstframe::testing
