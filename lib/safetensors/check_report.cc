#include "lib/safetensors/check_report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

absl::string_view SeverityName(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  const char* const units[] = {"kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  int unit = -1;
  while (value >= 999.5 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, units[unit]);
}

void WriteLine(std::string line, std::ostream& out) {
  line += '\n';
  out.write(line.data(), line.size());
}

void WriteFinding(const Finding& finding, std::ostream& out) {
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("finding");
  json.Key("severity").String(SeverityName(finding.severity));
  json.Key("rule").String(finding.rule);
  json.Key("path").String(finding.path);
  if (!finding.link_target.empty()) {
    json.Key("link_target").String(finding.link_target);
  }
  json.Key("byte");
  if (finding.position.has_value()) {
    json.Uint(*finding.position);
  } else {
    json.Null();
  }
  if (!finding.tensor.empty()) json.Key("tensor").String(finding.tensor);
  json.Key("found").String(finding.found);
  json.Key("expected").String(finding.expected);
  json.EndObject();
  WriteLine(std::move(line), out);
}

void WriteCount(const TensorSummary::Count& count, JsonWriter& json) {
  json.Key("tensors").Uint(count.tensors);
  json.Key("parameters").Uint(count.elements);
  json.Key("size_bytes").Uint(count.size_bytes);
}

}  // namespace

void WriteFileReportText(const FileReport& report, std::ostream& out) {
  for (const Finding& finding : report.findings) {
    WriteLine(absl::StrCat(SeverityName(finding.severity), ": ",
                           FindingMessage(finding), " [", finding.rule, "]"),
              out);
  }
  if (report.dropped_findings > 0) {
    WriteLine(absl::StrCat(report.path, ": ", report.dropped_findings,
                           " further findings"),
              out);
  }
  if (!report.hash.empty()) {
    WriteLine(absl::StrCat(report.hash, "  ", report.path), out);
  }
}

void WriteFileReportJsonl(const FileReport& report,
                          std::optional<HashKind> hash, std::ostream& out) {
  for (const Finding& finding : report.findings) WriteFinding(finding, out);
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String(report.is_index ? "index" : "file");
  json.Key("path").String(report.path);
  if (!report.link_target.empty()) {
    json.Key("link_target").String(report.link_target);
  }
  json.Key("valid").Bool(report.is_valid());
  json.Key("size_bytes").Uint(report.size_bytes);
  if (!report.is_index) json.Key("header_bytes").Uint(report.header_bytes);
  json.Key("tensors").Uint(report.tensors);
  json.Key("findings").Uint(report.findings.size() + report.dropped_findings);
  if (hash.has_value() && !report.hash.empty()) {
    json.Key(HashName(*hash)).String(report.hash);
  }
  json.EndObject();
  WriteLine(std::move(line), out);
}

void WriteTotalsText(const CheckTotals& totals, std::ostream& out) {
  WriteLine(absl::StrCat(
                totals.files, totals.files == 1 ? " file" : " files",
                totals.indexes > 0
                    ? absl::StrCat(" and ", totals.indexes,
                                   totals.indexes == 1 ? " index" : " indexes")
                    : "",
                ", ", totals.invalid, " invalid: ", totals.errors,
                totals.errors == 1 ? " error, " : " errors, ", totals.warnings,
                totals.warnings == 1 ? " warning" : " warnings"),
            out);
}

void WriteTotalsJsonl(const CheckTotals& totals, std::ostream& out) {
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("total");
  json.Key("files").Uint(totals.files);
  json.Key("indexes").Uint(totals.indexes);
  json.Key("invalid").Uint(totals.invalid);
  json.Key("errors").Uint(totals.errors);
  json.Key("warnings").Uint(totals.warnings);
  json.EndObject();
  WriteLine(std::move(line), out);
}

void WriteSummaryText(const TensorSummary& summary, std::ostream& out) {
  WriteLine(absl::StrFormat("%-12s %10s %16s %12s", "dtype", "tensors",
                            "parameters", "size"),
            out);
  const auto row = [&](absl::string_view name,
                       const TensorSummary::Count& count) {
    WriteLine(absl::StrFormat("%-12s %10d %16d %12s", name, count.tensors,
                              count.elements, HumanBytes(count.size_bytes)),
              out);
  };
  for (const DTypeInfo& info : AllDTypes()) {
    const auto& count = summary.by_dtype[static_cast<int>(info.dtype)];
    if (count.tensors > 0) row(info.name, count);
  }
  row("all", summary.all);
  std::string line = "alignment:";
  for (size_t i = 0; i < summary.aligned.size(); ++i) {
    absl::StrAppend(&line, i ? ", " : " ", summary.aligned[i], " at ",
                    TensorSummary::kAlignments[i], " bytes");
  }
  absl::StrAppend(&line, "; ", summary.misaligned,
                  " not at their element's size");
  WriteLine(std::move(line), out);
  WriteLine(absl::StrCat("headers: ", HumanBytes(summary.header_bytes), " of ",
                         HumanBytes(summary.file_bytes), "; ", summary.empty,
                         " tensors are empty"),
            out);
  if (summary.largest_bytes > 0) {
    WriteLine(absl::StrCat("largest: ", QuoteName(summary.largest), ", ",
                           HumanBytes(summary.largest_bytes)),
              out);
  }
}

void WriteSummaryJsonl(const TensorSummary& summary, std::ostream& out) {
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("summary");
  WriteCount(summary.all, json);
  json.Key("file_bytes").Uint(summary.file_bytes);
  json.Key("header_bytes").Uint(summary.header_bytes);
  json.Key("dtypes").BeginObject();
  for (const DTypeInfo& info : AllDTypes()) {
    const auto& count = summary.by_dtype[static_cast<int>(info.dtype)];
    if (count.tensors == 0) continue;
    json.Key(info.name).BeginObject();
    WriteCount(count, json);
    json.EndObject();
  }
  json.EndObject();
  json.Key("aligned_tensors").BeginObject();
  for (size_t i = 0; i < summary.aligned.size(); ++i) {
    json.Key(absl::StrCat(TensorSummary::kAlignments[i]))
        .Uint(summary.aligned[i]);
  }
  json.EndObject();
  json.Key("misaligned_tensors").Uint(summary.misaligned);
  json.Key("empty_tensors").Uint(summary.empty);
  json.Key("largest_tensor").String(summary.largest);
  json.Key("largest_tensor_bytes").Uint(summary.largest_bytes);
  json.EndObject();
  WriteLine(std::move(line), out);
}

}  // namespace firstframe
