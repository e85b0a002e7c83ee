// Opens an HTML page in headless Chromium, as a user's browser would.
//
// For tests of pages that this project writes:
//
//   const auto page = LoadHtmlPage(path);
//   if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
//   EXPECT_THAT(page->problems, IsEmpty());
//   EXPECT_THAT(page->dom, HasSubstr("first_decode"));
//
// Shell tests run the binary :check_html_page instead.

#ifndef LIB_TESTING_HTML_PAGE_H_
#define LIB_TESTING_HTML_PAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe::testing {

struct HtmlPage {
  // The document after its scripts ran, as HTML.
  std::string dom;
  // What a good page has none of: console messages, uncaught exceptions, and
  // references to anything outside the file.
  std::vector<std::string> problems;
};

// Loads `path`, an absolute path; returns nothing when no Chromium is installed
// and stops the test process when it does not start. Takes about 2 s.
std::optional<HtmlPage> LoadHtmlPage(const std::string& path);

// Returns what in `html` would make a browser fetch something: src, href,
// url(), @import and script-made requests that are neither data: nor a
// fragment. An <a href="https:..."> is a link, not a fetch, and allowed.
std::vector<std::string> ExternalReferences(absl::string_view html);

}  // namespace firstframe::testing

#endif  // LIB_TESTING_HTML_PAGE_H_
