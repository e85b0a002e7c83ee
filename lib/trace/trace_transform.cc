#include "lib/trace/trace_transform.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/regions/region.h"
#include "lib/trace/json_rewrite.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_copy.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

std::string Quoted(absl::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

JsonEdit Replace(std::string json) {
  return {.action = JsonEdit::Action::kReplace, .json = std::move(json)};
}

// Removes the folders of every absolute path inside `text`.
std::string StripFolders(absl::string_view text) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const bool starts_path = text[i] == '/' && i + 1 < text.size() &&
                             text[i + 1] != '/' && text[i + 1] != ' ' &&
                             (i == 0 || !absl::ascii_isalnum(text[i - 1]));
    if (!starts_path) {
      out.push_back(text[i++]);
      continue;
    }
    size_t end = i;
    size_t last_slash = i;
    while (end < text.size() && text[end] != ' ' && text[end] != '"' &&
           text[end] != '\'' && text[end] != ',' && text[end] != '(' &&
           text[end] != ';' && text[end] != ':') {
      if (text[end] == '/') last_slash = end;
      ++end;
    }
    out.append(text.data() + last_slash + 1, end - last_slash - 1);
    i = end;
  }
  return out;
}

// A number for a text that does not give the text away by length or order.
std::string Pseudonym(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return absl::StrCat("annotation-", absl::Hex(hash, absl::kZeroPad16));
}

bool IsPublicAnnotation(absl::string_view name) {
  return absl::StartsWith(name, kRegionSpanPrefix) ||
         absl::StartsWith(name, "fastvideo.profiler.") ||
         absl::StartsWith(name, "ProfilerStep#");
}

JsonEdit RedactMember(const TraceEvent& event, absl::string_view path,
                      absl::string_view raw) {
  if (path == "args.Call stack" || path == "args.Concrete Inputs" ||
      path == "args.Python module id" || path == "args.labels") {
    return {.action = JsonEdit::Action::kDrop};
  }
  if (raw.empty() || raw[0] != '"') return {};
  const std::string text = DecodeJsonString(UnquoteJson(raw));
  const bool is_annotation = event.kind == TraceEventKind::kUserAnnotation ||
                             event.kind == TraceEventKind::kGpuUserAnnotation;
  if (path == "name" && is_annotation && !IsPublicAnnotation(text)) {
    return Replace(Quoted(Pseudonym(text)));
  }
  if (absl::StrContains(text, "/")) return Replace(Quoted(StripFolders(text)));
  return {};
}

bool IsPrivateMetadata(absl::string_view key) {
  for (absl::string_view name :
       {"host_name", "username", "traceName", "INFO", "WARNING", "ERROR",
        "trace_id", "metadata", "PT_PROFILER_JOB_NAME"}) {
    if (key == name) return true;
  }
  return absl::StartsWith(key, "PT_PROFILER_JOB_");
}

}  // namespace

absl::StatusOr<WrittenTrace> RepairTrace(const std::string& input,
                                         const std::string& output) {
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input));
  TraceCopy copy;
  std::string json;
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) break;
    json.clear();
    AppendCleanJson(event.raw, &json);
    FF_RETURN_IF_ERROR(copy.Event(output, reader->info(), json));
  }
  FF_ASSIGN_OR_RETURN(auto written, copy.Finish(output, reader->info()));
  return written[0];
}

absl::StatusOr<WrittenTrace> RedactTrace(const std::string& input,
                                         const std::string& output) {
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input));
  TraceCopy copy([](absl::string_view key) { return !IsPrivateMetadata(key); });
  std::string json;
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) break;
    json.clear();
    AppendEditedJson(
        event.raw,
        [&](absl::string_view path, absl::string_view raw) {
          return RedactMember(event, path, raw);
        },
        &json);
    FF_RETURN_IF_ERROR(copy.Event(output, reader->info(), json));
  }
  FF_ASSIGN_OR_RETURN(auto written, copy.Finish(output, reader->info()));
  return written[0];
}

}  // namespace firstframe
