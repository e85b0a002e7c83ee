#include "lib/testing/html_page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ExternalReferences, FindsWhatABrowserWouldFetch) {
  EXPECT_THAT(ExternalReferences(
                  R"(<script src="https://x/y.js"></script><img src='a.png'>
                     <link rel=stylesheet href=style.css>
                     <style>@import "b.css"; p{background:url(c.png)}</style>
                     <script>fetch("/d.json")</script>)"),
              ElementsAre(HasSubstr("https://x/y.js"), HasSubstr("a.png"),
                          HasSubstr("style.css"), HasSubstr("b.css"),
                          HasSubstr("c.png"), HasSubstr("/d.json")));
}

TEST(ExternalReferences, AllowsDataFragmentsAndLinks) {
  EXPECT_THAT(ExternalReferences(
                  R"(<img src="data:image/png;base64,AA"><use href="#icon"/>
                     <a class=x href="https://ui.perfetto.dev">open</a>)"),
              IsEmpty());
}

class HtmlPageTest : public ::testing::Test {
 protected:
  std::optional<HtmlPage> Load(absl::string_view html) {
    return LoadHtmlPage(dir_.Write("page.html", html));
  }
  TempDir dir_;
};

TEST_F(HtmlPageTest, ReturnsTheDocumentAfterItsScripts) {
  const auto page = Load(
      "<!doctype html><p id=a></p><script>"
      "document.getElementById('a').textContent = 'val' + 'ue'</script>");
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->dom, HasSubstr("<p id=\"a\">value</p>"));
  EXPECT_THAT(page->problems, IsEmpty());
}

TEST_F(HtmlPageTest, ReportsConsoleMessagesAndExceptions) {
  const auto page = Load(
      "<!doctype html><script>console.error('first');"
      "setTimeout(() => { null.second }, 10)</script>");
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems,
              ElementsAre(HasSubstr("first"), HasSubstr("second")));
}

}  // namespace
}  // namespace firstframe::testing
