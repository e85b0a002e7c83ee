#include "lib/safetensors/finding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

constexpr size_t kMaxQuoted = 200;

bool IsError(const Finding& finding) {
  return finding.severity == Severity::kError;
}

}  // namespace

void FindingSink::Report(Severity severity, absl::string_view rule,
                         std::optional<uint64_t> position,
                         absl::string_view tensor, std::string found,
                         absl::string_view expected) {
  if (is_full()) {
    ++*dropped_;
    // An error must not hide behind a hundred warnings.
    if (severity == Severity::kWarning || HasError(*findings_)) return;
    findings_->pop_back();
  }
  Finding finding;
  finding.severity = severity;
  finding.rule = std::string(rule);
  finding.path = path_;
  finding.position = position;
  finding.tensor = std::string(tensor);
  finding.found = std::move(found);
  finding.expected = std::string(expected);
  findings_->push_back(std::move(finding));
}

std::string QuoteName(absl::string_view name) {
  std::string quoted;
  if (name.size() <= kMaxQuoted) {
    AppendJsonString(name, &quoted);
    return quoted;
  }
  size_t cut = kMaxQuoted;  // back to the start of a UTF-8 sequence
  while (cut > 0 && (static_cast<uint8_t>(name[cut]) & 0xC0) == 0x80) --cut;
  AppendJsonString(name.substr(0, cut), &quoted);
  absl::StrAppend(&quoted, "... (", name.size(), " bytes)");
  return quoted;
}

std::string FindingMessage(const Finding& finding) {
  std::string message = finding.path;
  if (!finding.link_target.empty()) {
    absl::StrAppend(&message, " -> ", finding.link_target);
  }
  if (finding.position.has_value()) {
    absl::StrAppend(&message, message.empty() ? "" : ": ", "byte ",
                    *finding.position);
  }
  if (!finding.tensor.empty()) {
    absl::StrAppend(&message, message.empty() ? "" : ": ", "tensor ",
                    QuoteName(finding.tensor));
  }
  absl::StrAppend(&message, message.empty() ? "" : ": ", "found ",
                  finding.found);
  if (!finding.expected.empty()) {
    absl::StrAppend(&message, ", expected ", finding.expected);
  }
  return message;
}

bool HasError(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), IsError);
}

absl::Status FindingsStatus(const std::vector<Finding>& findings) {
  const auto first = std::find_if(findings.begin(), findings.end(), IsError);
  if (first == findings.end()) return absl::OkStatus();
  const auto more = std::count_if(first + 1, findings.end(), IsError);
  std::string message = FindingMessage(*first);
  if (more > 0) {
    absl::StrAppend(&message, " (and ", more, " more error",
                    more == 1 ? ")" : "s)");
  }
  return absl::DataLossError(message);
}

}  // namespace firstframe
