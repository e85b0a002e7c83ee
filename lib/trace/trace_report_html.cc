#include "absl/strings/str_cat.h"
#include "lib/html/page.h"
#include "lib/trace/trace_report.h"
#include "lib/trace/trace_report_assets.h"

namespace firstframe {

std::string TraceReportHtml(const std::vector<TraceSummary>& summaries,
                            const TraceReportOptions& options) {
  std::string names;
  for (const TraceSummary& summary : summaries) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", summary.file.path);
  }
  return RenderHtmlPage({.title = "Trace report",
                         .subtitle = names,
                         .data_json = TraceReportJson(summaries, options),
                         .style = kTraceReportCss,
                         .script = kTraceReportJs,
                         .fallback = "This page needs JavaScript. The same "
                                     "figures: trace_report FILE."});
}

}  // namespace firstframe
