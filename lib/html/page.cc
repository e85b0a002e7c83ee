#include "lib/html/page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/html/page_assets.h"

namespace firstframe {

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&#39;"}});
}

std::string EscapeScriptJson(absl::string_view json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"}});
}

std::string RenderHtmlPage(const HtmlPageParts& parts) {
  const std::string title = EscapeHtml(parts.title);
  std::string page = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      title, "</title>\n<style>", kPageCss, parts.style,
      "</style>\n</head>\n<body>\n<header><h1>", title, "</h1>");
  if (!parts.subtitle.empty()) {
    absl::StrAppend(&page, "<p>", EscapeHtml(parts.subtitle), "</p>");
  }
  absl::StrAppend(&page, "</header>\n<main id=\"main\"></main>\n");
  if (!parts.fallback.empty()) {
    absl::StrAppend(&page, "<noscript><pre>", EscapeHtml(parts.fallback),
                    "</pre></noscript>\n");
  }
  absl::StrAppend(&page, "<script type=\"application/json\" id=\"data\">",
                  EscapeScriptJson(parts.data_json), "</script>\n<script>",
                  kPageJs, "\n(() => {\n", parts.script,
                  "\n})();\n</script>\n</body>\n</html>\n");
  return page;
}

}  // namespace firstframe
