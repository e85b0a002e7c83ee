#include "lib/safetensors/header.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/utf8.h"
#include "lib/safetensors/header_parser.h"

namespace firstframe {
namespace {

// Checks that the tensors, in the order of their data, fill the data buffer
// without hole or overlap, and that the buffer fills the file.
class LayoutCheck {
 public:
  LayoutCheck(const SafetensorsHeader& header, FindingSink& sink)
      : header_(header), sink_(sink) {}

  // Returns the end of the last tensor.
  uint64_t CheckTensors() {
    uint64_t end = 0;
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      const SafetensorsTensor& tensor = header_.tensors[i];
      if (tensor.begin != end) {
        const std::string where =
            i == 0
                ? "0, the start of the data"
                : absl::StrCat(end, ", where ",
                               QuoteName(header_.tensors[i - 1].name), " ends");
        sink_.Error(
            tensor.begin < end ? "overlap" : "hole", tensor.position,
            tensor.name,
            absl::StrCat("data from ", tensor.begin, " to ", tensor.end),
            absl::StrCat("data from ", where));
      }
      end = std::max(end, tensor.end);
    }
    return end;
  }

  void CheckFileSize(uint64_t data_end, uint64_t file_size,
                     Strictness strictness) {
    const uint64_t present = file_size - header_.data_offset;
    if (present < data_end) {
      sink_.Error("truncated_file", file_size, FirstCut(present),
                  absl::StrCat("the end of the file, ", file_size, " of ",
                               header_.data_offset + data_end, " bytes"),
                  absl::StrCat(data_end - present, " bytes more"));
    } else if (present > data_end) {
      sink_.Report(StrictError(strictness), "trailing_bytes",
                   header_.data_offset + data_end, "",
                   absl::StrCat(present - data_end,
                                " bytes after the last tensor's data"),
                   absl::StrCat("the end of the file at byte ",
                                header_.data_offset + data_end));
    }
  }

 private:
  // The first tensor that is not whole.
  absl::string_view FirstCut(uint64_t present) const {
    for (const SafetensorsTensor& tensor : header_.tensors) {
      if (tensor.end > present) return tensor.name;
    }
    return "";
  }

  const SafetensorsHeader& header_;
  FindingSink& sink_;
};

bool ByData(const SafetensorsTensor& a, const SafetensorsTensor& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  if (a.end != b.end) return a.end < b.end;
  return a.position < b.position;
}

}  // namespace

HeaderVerdict CheckSafetensorsHeader(absl::string_view path,
                                     absl::string_view start,
                                     uint64_t file_size,
                                     Strictness strictness) {
  HeaderVerdict verdict;
  FindingSink sink(path, &verdict.findings, &verdict.dropped_findings);
  const std::variant<uint64_t, Finding> prefix =
      CheckHeaderPrefix(path, start, file_size);
  if (const Finding* finding = std::get_if<Finding>(&prefix)) {
    verdict.findings.push_back(*finding);
    return verdict;
  }
  const uint64_t length = std::get<uint64_t>(prefix);
  if (start.size() - kHeaderPrefixSize < length) {
    sink.Error("header_past_end", start.size(), "",
               absl::StrCat("the end of the bytes after ", start.size()),
               absl::StrCat("a header of ", length, " bytes"));
    return verdict;
  }
  const absl::string_view json = start.substr(kHeaderPrefixSize, length);
  SafetensorsHeader& header = verdict.header;
  header.data_offset = kHeaderPrefixSize + length;
  if (const size_t bad = FindInvalidUtf8(json); bad != json.size()) {
    sink.Error("not_utf8", kHeaderPrefixSize + bad, "",
               "a byte that is not UTF-8", "a header in UTF-8");
    return verdict;
  }
  HeaderParser(json, strictness, &header, &sink).Parse();
  if (!verdict.ok()) return verdict;
  if (!std::is_sorted(header.tensors.begin(), header.tensors.end(), ByData)) {
    std::sort(header.tensors.begin(), header.tensors.end(), ByData);
  }
  LayoutCheck layout(header, sink);
  header.data_size = layout.CheckTensors();
  if (verdict.ok()) {
    layout.CheckFileSize(header.data_size, file_size, strictness);
  }
  return verdict;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view path, absl::string_view start, uint64_t file_size,
    Strictness strictness) {
  HeaderVerdict verdict =
      CheckSafetensorsHeader(path, start, file_size, strictness);
  if (absl::Status status = FindingsStatus(verdict.findings); !status.ok()) {
    return status;
  }
  return std::move(verdict.header);
}

}  // namespace firstframe
