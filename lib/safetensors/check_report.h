// Renders the results of a conformance check, as text or as JSON lines
// (docs/formats/safetensors_check.md).

#ifndef LIB_SAFETENSORS_CHECK_REPORT_H_
#define LIB_SAFETENSORS_CHECK_REPORT_H_

#include <optional>
#include <ostream>

#include "lib/base/hasher.h"
#include "lib/safetensors/check.h"

namespace firstframe {

// One line a finding, and one for the file unless it is sound and has no hash.
void WriteFileReportText(const FileReport& report, std::ostream& out);

// One record a finding and one for the file. `hash` is what was asked for.
void WriteFileReportJsonl(const FileReport& report,
                          std::optional<HashKind> hash, std::ostream& out);

// The last line: how many files, how many of them invalid.
void WriteTotalsText(const CheckTotals& totals, std::ostream& out);
void WriteTotalsJsonl(const CheckTotals& totals, std::ostream& out);

// Element types, sizes, alignment and the number of parameters.
void WriteSummaryText(const TensorSummary& summary, std::ostream& out);
void WriteSummaryJsonl(const TensorSummary& summary, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_CHECK_REPORT_H_
