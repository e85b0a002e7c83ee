#include "lib/phase/phase_page.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "lib/html/page.h"
#include "lib/phase/phase_page_assets.h"
#include "lib/phase/phase_text.h"

namespace firstframe {

std::string RenderPhasePage(const PhaseDocument& document,
                            absl::string_view title) {
  std::string data;
  JsonWriter json(&data);
  WritePhaseDocument(document, json);
  std::ostringstream text;
  if (!document.samples.empty()) {
    WritePhaseText(document.samples.front(), {}, text);
  }
  const std::string fallback = text.str();
  const std::string subtitle = absl::StrCat(
      document.tool, document.build.version.empty() ? "" : " ",
      document.build.version, document.build.commit.empty() ? "" : " at ",
      document.build.commit);
  return RenderHtmlPage({.title = title,
                         .subtitle = subtitle,
                         .data_json = data,
                         .style = kPhasePageCss,
                         .script = kPhasePageJs,
                         .fallback = fallback});
}

}  // namespace firstframe
