// One self-contained HTML page: the project's look, a page's own data and the
// script that draws it. Nothing is fetched: the page works from a disk,
// offline, light or dark as the reader's system says.
//
// page.css names the colours and the parts (cards, tables, tags, bars); page.js
// gives scripts `ff`: ff.data (the parsed data), ff.el(tag, attributes,
// children), ff.duration(ns), ff.bytes(n), ff.number(x), ff.tip(element, text).

#ifndef LIB_HTML_PAGE_H_
#define LIB_HTML_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

struct HtmlPageParts {
  absl::string_view title;      // text; also the heading
  absl::string_view subtitle;   // text under the heading, may be empty
  absl::string_view data_json;  // one JSON value, read by the script as ff.data
  absl::string_view style;      // CSS of this page, after the common one
  absl::string_view script;     // JavaScript; fills <main id="main">
  absl::string_view fallback;   // text shown, preformatted, without JavaScript
};

// Returns the document. Title, subtitle, data and fallback may hold any text:
// it is escaped. Style and script are the project's own and go in as they are.
std::string RenderHtmlPage(const HtmlPageParts& parts);

// Returns `text` for use between tags or inside a quoted attribute.
std::string EscapeHtml(absl::string_view text);

// Returns `json` such that it cannot end the <script> element around it: "<"
// outside of strings does not occur in JSON, inside it becomes \u003c.
std::string EscapeScriptJson(absl::string_view json);

}  // namespace firstframe

#endif  // LIB_HTML_PAGE_H_
