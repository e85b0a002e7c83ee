#include "lib/html/page.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/html_page.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(HtmlPage, EscapesText) {
  EXPECT_EQ(EscapeHtml("<a href=\"x\">&'"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(EscapeScriptJson(R"(["</script><!--"])"),
            R"(["\u003c/script>\u003c!--"])");
}

TEST(HtmlPage, HostileTextStaysText) {
  const std::string html = RenderHtmlPage(
      {.title = "<script>bad()</script>",
       .subtitle = "a & b",
       .data_json = R"({"name": "</script><script>bad()</script>"})",
       .script =
           "document.getElementById('main').append("
           "ff.el('p', {id: 'seen'}, ff.data.name.length + ' characters, ',"
           " ff.duration(1500000), ', ', ff.bytes(2500000)))",
       .fallback = "</pre><script>bad()</script>"});
  EXPECT_THAT(html, Not(HasSubstr("<script>bad()")));
  const testing::TempDir dir;
  const auto page = testing::LoadHtmlPage(dir.Write("page.html", html));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  EXPECT_THAT(page->dom,
              HasSubstr("<p id=\"seen\">31 characters, 1.50 ms, 2.5 MB</p>"));
}

}  // namespace
}  // namespace firstframe
