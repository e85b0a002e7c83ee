// What JsonTraceReader makes of a document's members beside its events.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/trace/json_trace_reader.h"

namespace firstframe {
namespace {

constexpr size_t kMaxMetadataBytes = 1 << 20;

}  // namespace

// The document is whole and is no trace: what it is may help.
absl::Status JsonTraceReader::NoEventsError() const {
  std::string members;
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < info_.metadata.size() && i < kShown; ++i) {
    absl::StrAppend(&members, i == 0 ? "" : ", ", info_.metadata[i].first);
  }
  if (info_.metadata.size() > kShown) members += ", ...";
  std::string hint;
  if (!info_.Metadata("traceEvents").empty()) {
    hint = "; traceEvents is not a list";
  } else if (absl::StrContains(info_.Metadata("schema"),
                               "firstframe.profile")) {
    hint =
        "; this is a session's account, its trace is the .pt.trace.json.gz "
        "beside it";
  }
  return absl::DataLossError(
      absl::StrCat(info_.path,
                   ": not a trace: expected an object with a list traceEvents, "
                   "or a list of events, found ",
                   members.empty() ? "an object without members"
                                   : absl::StrCat("an object of ", members),
                   hint));
}

void JsonTraceReader::KeepMember(absl::string_view key,
                                 absl::string_view value) {
  if (key == "baseTimeNanoseconds") {
    info_.has_base_time =
        absl::SimpleAtoi(UnquoteJson(value), &info_.base_time_ns);
  }
  if (value.size() <= kMaxMetadataBytes) {
    info_.metadata.emplace_back(std::string(key), std::string(value));
  }
}

}  // namespace firstframe
