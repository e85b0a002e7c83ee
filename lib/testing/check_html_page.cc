// check_html_page PAGE TEXT...: fails unless the page loads in headless
// Chromium without console messages, exceptions or external references, and its
// document then holds each TEXT. Succeeds with a note where Chromium is not
// installed.

#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "lib/testing/html_page.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: check_html_page PAGE TEXT...\n");
    return 2;
  }
  const std::string path = std::filesystem::absolute(argv[1]);
  const auto page = firstframe::testing::LoadHtmlPage(path);
  if (!page.has_value()) {
    std::fprintf(stderr, "skipped: chromium is not installed\n");
    return 0;
  }
  int failures = 0;
  for (const std::string& problem : page->problems) {
    std::fprintf(stderr, "%s: %s\n", argv[1], problem.c_str());
    ++failures;
  }
  for (int i = 2; i < argc; ++i) {
    if (absl::StrContains(page->dom, argv[i])) continue;
    std::fprintf(stderr, "%s: '%s' is not in the document\n", argv[1], argv[i]);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
