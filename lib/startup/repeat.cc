#include "lib/startup/repeat.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status_macros.h"
#include "lib/host/child_process.h"

namespace firstframe {
namespace {

// Puts a key in front of those of a JSON object.
std::string WithLaunchedWall(absl::string_view facts, int64_t wall_ns) {
  const std::string key = absl::StrCat("{\"launched_wall_ns\":", wall_ns);
  const size_t brace = facts.find('{');
  if (brace == absl::string_view::npos) return absl::StrCat(key, "}");
  const absl::string_view rest = facts.substr(brace + 1);
  const bool is_empty = rest.find('"') == absl::string_view::npos;
  return absl::StrCat(key, is_empty ? "" : ",", rest);
}

}  // namespace

absl::StatusOr<RepeatResult> RepeatStartup(const RepeatOptions& options) {
  const auto is_cancelled = [&] {
    return options.is_cancelled && options.is_cancelled();
  };
  RepeatResult result;
  for (int run = 0; run < options.runs && !is_cancelled(); ++run) {
    if (options.prepare) FF_RETURN_IF_ERROR(options.prepare());
    FF_ASSIGN_OR_RETURN(const ChildResult child,
                        RunChild({.argv = options.argv,
                                  .environment = {},
                                  .launch_time_variable = kLaunchTimeVariable,
                                  .is_cancelled = options.is_cancelled}));
    absl::StatusOr<PhaseDocument> document =
        ParsePhaseDocument(child.standard_output);
    if (document.ok() && document->samples.size() != 1) {
      document = absl::DataLossError("expected a document of one sample");
    }
    if (!document.ok()) {
      if (is_cancelled() && run > 0) break;
      return Annotate(
          document.status(),
          absl::StrCat("run ", run + 1, " ended with exit ", child.exit_code));
    }
    const std::string facts = document->sample_facts_json.empty()
                                  ? "{}"
                                  : document->sample_facts_json[0];
    if (run == 0) {
      result.document = *document;
      result.document.samples.clear();
      result.document.sample_facts_json.clear();
    }
    result.document.samples.push_back(std::move(document->samples[0]));
    result.document.sample_facts_json.push_back(
        WithLaunchedWall(facts, child.wall_ns));
    result.launched_wall_ns.push_back(child.wall_ns);
    result.exit_codes.push_back(child.exit_code);
    if (options.progress) options.progress(run + 1);
  }
  return result;
}

}  // namespace firstframe
