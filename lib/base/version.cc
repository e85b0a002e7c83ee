#include "lib/base/version.h"

#include "absl/strings/string_view.h"

// Defined by the link stamp (version_stamp.cc), which Bazel compiles as it
// links.
extern "C" const char firstframe_build_commit[];

namespace firstframe {
namespace {

// Raised when a format or a flag changes; see docs/contributing.md.
constexpr char kVersion[] = "0.1.0";

}  // namespace

BuildInfo GetBuildInfo() {
  BuildInfo info = {.version = kVersion,
                    .commit = "unknown",
                    .cuda_toolkit = FIRSTFRAME_CUDA_TOOLKIT};
  const absl::string_view commit = firstframe_build_commit;
  // Bazel's placeholders for an unstamped build are short words.
  if (commit.size() >= 7 && commit != "redacted") {
    info.commit = std::string(commit);
  }
  return info;
}

}  // namespace firstframe
