#include "lib/trace/trace_reader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/json_trace_reader.h"
#include "lib/trace/perfetto_trace_reader.h"
#include "lib/trace/read_buffer.h"

namespace firstframe {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Whether `head` (no white space in front) opens as JSON traces do; a Perfetto
// packet's length and first tag do not look so.
bool StartsJson(absl::string_view head) {
  if (head[0] != '{' && head[0] != '[') return false;
  const char open = head[0];
  head.remove_prefix(1);
  while (!head.empty() && IsSpace(head[0])) head.remove_prefix(1);
  if (head.empty()) return true;
  return open == '{' ? head[0] == '"' || head[0] == '}'
                     : head[0] == '{' || head[0] == ']' || head[0] == ',';
}

}  // namespace

const char* TraceOddityName(TraceOddity oddity) {
  switch (oddity) {
    case TraceOddity::kTruncated:
      return "truncated";
    case TraceOddity::kTruncatedGzip:
      return "truncated_gzip";
    case TraceOddity::kMalformedEvent:
      return "malformed_event";
    case TraceOddity::kControlCharacter:
      return "control_character";
    case TraceOddity::kInvalidUtf8:
      return "invalid_utf8";
    case TraceOddity::kInnerQuote:
      return "inner_quote";
    case TraceOddity::kBareWord:
      return "bare_word";
    case TraceOddity::kMissingKeyQuote:
      return "missing_key_quote";
    case TraceOddity::kExtraComma:
      return "extra_comma";
    case TraceOddity::kMissingComma:
      return "missing_comma";
    case TraceOddity::kTimeIsText:
      return "time_is_text";
    case TraceOddity::kTrailingData:
      return "trailing_data";
  }
  return "unknown";
}

absl::string_view TraceFileInfo::Metadata(absl::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return value;
  }
  return {};
}

int64_t TraceFileInfo::Rank() const {
  int64_t rank = -1;
  const absl::string_view value =
      FindJsonValue(Metadata("distributedInfo"), "rank");
  return absl::SimpleAtoi(value, &rank) ? rank : -1;
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::Open(
    const std::string& path) {
  FF_ASSIGN_OR_RETURN(auto source, ByteSource::Open(path));
  return FromSource(std::move(source), path);
}

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::FromSource(
    std::unique_ptr<ByteSource> source, const std::string& name) {
  ReadBuffer buffer(std::move(source));
  // Enough to tell the formats apart.
  for (bool more = true; more && buffer.data().size() < 64;) {
    const absl::StatusOr<bool> filled = buffer.Fill();
    FF_RETURN_IF_ERROR(Annotate(filled.status(), name));
    more = *filled;
  }
  absl::string_view head = buffer.data();
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  while (!head.empty() && IsSpace(head[0])) head.remove_prefix(1);
  if (head.empty()) {
    return absl::DataLossError(absl::StrCat(name, ": holds no trace: empty"));
  }
  // Trace.packet, field 1, length-delimited: every Perfetto file begins with
  // 0x0a, which JSON reads as a line end.
  const bool maybe_perfetto = buffer.data()[0] == '\x0a';
  if (maybe_perfetto ? StartsJson(head) : head[0] == '{' || head[0] == '[') {
    return std::unique_ptr<TraceReader>(
        std::make_unique<JsonTraceReader>(std::move(buffer), name));
  }
  if (maybe_perfetto) {
    return std::unique_ptr<TraceReader>(
        std::make_unique<PerfettoTraceReader>(std::move(buffer), name));
  }
  return absl::DataLossError(absl::StrCat(
      name, ": expected a JSON or Perfetto trace, found a first byte of 0x",
      absl::Hex(static_cast<unsigned char>(head[0]), absl::kZeroPad2)));
}

}  // namespace firstframe
