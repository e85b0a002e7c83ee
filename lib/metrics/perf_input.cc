#include "lib/metrics/perf_input.h"

#include <glob.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

class Feeder {
 public:
  Feeder(const PerfObserver& observer, PerfReport& report, PerfInputs& inputs)
      : observer_(observer), report_(report), inputs_(inputs) {}

  // Returns an error when the line is no record.
  absl::Status Feed(absl::string_view line) {
    const absl::StatusOr<PerfRecordKind> kind = parser_.Parse(line);
    if (!kind.ok()) return kind.status();
    ++inputs_.lines;
    switch (*kind) {
      case PerfRecordKind::kRequest:
        report_.Add(parser_.request());
        if (observer_.on_request) observer_.on_request(parser_.request());
        break;
      case PerfRecordKind::kTrainWindow:
        report_.Add(parser_.train_window());
        if (observer_.on_window) observer_.on_window(parser_.train_window());
        break;
      case PerfRecordKind::kOther:
        ++inputs_.other_kinds;
        break;
    }
    return absl::OkStatus();
  }

  void Report(const JsonlReader& reader, int64_t line,
              absl::string_view problem) {
    if (!observer_.on_problem) return;
    observer_.on_problem(absl::StrCat(reader.name(), ":", line, ": ", problem));
  }

 private:
  const PerfObserver& observer_;
  PerfReport& report_;
  PerfInputs& inputs_;
  PerfRecordParser parser_;
};

}  // namespace

absl::Status ReadPerfRecords(JsonlReader& reader, bool is_last,
                             const PerfObserver& observer, PerfReport& report,
                             PerfInputs& inputs) {
  Feeder feeder(observer, report, inputs);
  const int64_t before = reader.bytes_read();
  while (true) {
    const absl::StatusOr<std::optional<JsonlLine>> line = reader.Next();
    if (!line.ok()) return line.status();
    if (!line->has_value()) break;
    if (const absl::Status fed = feeder.Feed((*line)->text); !fed.ok()) {
      ++inputs.malformed;
      feeder.Report(reader, (*line)->number, fed.message());
    }
  }
  inputs.bytes += reader.bytes_read() - before;
  const std::optional<JsonlLine> rest = is_last ? reader.Rest() : std::nullopt;
  if (rest && !feeder.Feed(rest->text).ok()) {
    ++inputs.torn;
    feeder.Report(reader, rest->number, "the last line is half written");
  }
  return absl::OkStatus();
}

std::vector<std::string> ExpandPattern(const std::string& pattern) {
  const bool has_wildcard = pattern.find_first_of("*?[") != std::string::npos;
  if (!has_wildcard || ::access(pattern.c_str(), F_OK) == 0) return {pattern};
  std::vector<std::string> paths;
  glob_t matches;
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  ::globfree(&matches);
  if (paths.empty()) paths.push_back(pattern);
  return paths;
}

}  // namespace firstframe
