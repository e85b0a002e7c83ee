// Renderings of a PerfReport.

#ifndef LIB_METRICS_PERF_REPORT_TEXT_H_
#define LIB_METRICS_PERF_REPORT_TEXT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "lib/base/json_writer.h"
#include "lib/metrics/median_ratio.h"
#include "lib/metrics/perf_report.h"

namespace firstframe {

// What was read, for the head of a report.
struct PerfInputs {
  std::vector<std::string> files;
  int64_t lines = 0;
  int64_t bytes = 0;
  int64_t other_kinds = 0;  // records of other kinds: left out
  int64_t malformed = 0;
  int64_t torn = 0;  // files whose last line is half written
};

void WritePerfText(const PerfInputs& inputs, const PerfReport& report,
                   std::ostream& out);

// Writes the object's members "inputs", "requests" and "training"; the caller
// opens and closes the object.
void WritePerfJson(const PerfInputs& inputs, const PerfReport& report,
                   JsonWriter& json);

// Prometheus' text exposition format, version 0.0.4.
std::string PerfPrometheus(const PerfReport& report);

// One self-contained page with plots.
std::string PerfHtml(const PerfInputs& inputs, const PerfReport& report);

// One measure of two reports.
struct PerfDifference {
  std::string name;
  int64_t left_count = 0;
  int64_t right_count = 0;
  MedianRatio medians;
  // Worse by more than the threshold, and by the interval surely worse.
  bool is_regression = false;
  bool is_improvement = false;
};

// Compares what both reports measure. `threshold` is a fraction.
std::vector<PerfDifference> ComparePerf(const PerfReport& left,
                                        const PerfReport& right,
                                        double threshold, double confidence);
void WritePerfDifferences(const std::vector<PerfDifference>& differences,
                          double threshold, std::ostream& out);
void WritePerfDifferencesJson(const std::vector<PerfDifference>& differences,
                              double threshold, JsonWriter& json);

// Columns of the CSV form; one row a record.
std::string PerfCsvHeader();
std::string PerfCsvRow(const RequestRecord& record);
std::string PerfCsvRow(const TrainWindowRecord& record);

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_REPORT_TEXT_H_
