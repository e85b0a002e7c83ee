#include "lib/trace/trace_copy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_rewrite.h"

namespace firstframe {

TraceMetadata TraceCopy::Clean(const TraceFileInfo& info, size_t from) const {
  TraceMetadata metadata;
  for (size_t i = from; i < info.metadata.size(); ++i) {
    const auto& [key, raw] = info.metadata[i];
    if (key == "traceEvents" || (keep_ != nullptr && !keep_(key))) continue;
    std::string value;
    AppendCleanJson(raw, &value);
    metadata.emplace_back(key, std::move(value));
  }
  return metadata;
}

absl::StatusOr<TraceCopy::Target*> TraceCopy::Begin(const std::string& path,
                                                    const TraceFileInfo& info) {
  if (const auto found = targets_.find(path); found != targets_.end()) {
    return &found->second;
  }
  if (targets_.size() >= kMaxFiles) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than ", kMaxFiles, " parts: choose a longer window"));
  }
  Target target;
  target.metadata_count = info.metadata.size();
  FF_ASSIGN_OR_RETURN(target.writer,
                      TraceFileWriter::Create(path, Clean(info, 0)));
  for (const std::string& json : for_all_) {
    FF_RETURN_IF_ERROR(target.writer->Event(json));
  }
  return &targets_.emplace(path, std::move(target)).first->second;
}

absl::Status TraceCopy::Event(const std::string& path,
                              const TraceFileInfo& info,
                              absl::string_view json) {
  FF_ASSIGN_OR_RETURN(Target* const target, Begin(path, info));
  return target->writer->Event(json);
}

absl::Status TraceCopy::EventForAll(absl::string_view json) {
  for_all_.emplace_back(json);
  for (auto& [path, target] : targets_) {
    FF_RETURN_IF_ERROR(target.writer->Event(json));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WrittenTrace>> TraceCopy::Finish(
    const std::string& path, const TraceFileInfo& info) {
  if (!path.empty()) FF_RETURN_IF_ERROR(Begin(path, info).status());
  std::vector<WrittenTrace> written;
  for (auto& [name, target] : targets_) {
    TraceMetadata tail = Clean(info, target.metadata_count);
    // A Perfetto trace's base time comes from its clocks.
    if (info.format == TraceFileFormat::kPerfetto && info.has_base_time) {
      tail.emplace_back("baseTimeNanoseconds", absl::StrCat(info.base_time_ns));
    }
    FF_RETURN_IF_ERROR(target.writer->Finish(tail));
    written.push_back({name, target.writer->event_count()});
  }
  targets_.clear();
  return written;
}

}  // namespace firstframe
