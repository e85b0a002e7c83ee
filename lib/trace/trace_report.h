// Renders a trace's summary.

#ifndef LIB_TRACE_TRACE_REPORT_H_
#define LIB_TRACE_TRACE_REPORT_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "lib/trace/trace_summary.h"

namespace firstframe {

struct TraceReportOptions {
  size_t top = 10;    // kernels and operators shown for each region and overall
  int columns = 100;  // for text; names are cut to fit
};

// Tables: devices, regions, operator classes, kernels, and what was odd.
void WriteTraceText(const TraceSummary& summary,
                    const TraceReportOptions& options, std::ostream& out);

// One document of schema "firstframe.trace_report"
// (docs/formats/trace_report.md) for any number of traces.
std::string TraceReportJson(const std::vector<TraceSummary>& summaries,
                            const TraceReportOptions& options);

// A self-contained page over the same data.
std::string TraceReportHtml(const std::vector<TraceSummary>& summaries,
                            const TraceReportOptions& options);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_REPORT_H_
