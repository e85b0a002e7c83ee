#include "lib/trace/trace_file_writer.h"

#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// ": " with a space: HTA finds the rank by a pattern that wants white space.
std::string Member(const std::string& key, const std::string& value) {
  std::string text = "  ";
  AppendJsonString(key, &text);
  absl::StrAppend(&text, ": ", value);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceFileWriter>> TraceFileWriter::Create(
    const std::string& path, const TraceMetadata& head) {
  FF_ASSIGN_OR_RETURN(auto file, GzipFile::Create(path));
  std::unique_ptr<TraceFileWriter> writer(
      new TraceFileWriter(path, std::move(file)));
  std::string text = "{\n";
  for (const auto& [key, value] : head) {
    absl::StrAppend(&text, Member(key, value), ",\n");
  }
  text += "  \"traceEvents\": [\n";
  FF_RETURN_IF_ERROR(writer->file_->Write(text));
  return writer;
}

absl::Status TraceFileWriter::Event(absl::string_view json) {
  if (count_++ > 0) FF_RETURN_IF_ERROR(file_->Write(",\n"));
  return file_->Write(json);
}

absl::Status TraceFileWriter::Finish(const TraceMetadata& tail) {
  std::string text = "\n  ]";
  for (const auto& [key, value] : tail) {
    absl::StrAppend(&text, ",\n", Member(key, value));
  }
  text += "\n}\n";
  FF_RETURN_IF_ERROR(file_->Write(text));
  return file_->Commit();
}

}  // namespace firstframe
