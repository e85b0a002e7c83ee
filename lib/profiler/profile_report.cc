#include "lib/profiler/profile_report.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace firstframe {
namespace {

void WriteRegion(const RegionSummary& region, const FinalizedProfile& profile,
                 int top, std::ostream& out) {
  out << absl::StreamFormat(
      "  %-32s %6d x %12.3f ms host %12.3f ms GPU busy %8d GPU events\n",
      region.name, region.count, region.host_ns * 1e-6, region.busy_ns * 1e-6,
      region.gpu_event_count);
  if (const auto found = profile.cuda_event_ns.find(region.name);
      found != profile.cuda_event_ns.end()) {
    out << absl::StreamFormat(
        "    %12.3f ms GPU time between CUDA events on the default stream\n",
        found->second * 1e-6);
  }
  const size_t shown = std::min<size_t>(region.kernels.size(),
                                        static_cast<size_t>(std::max(top, 0)));
  for (size_t i = 0; i < shown; ++i) {
    const GpuWorkRow& row = region.kernels[i];
    out << absl::StreamFormat("    %12.3f ms %7d x  %s\n", row.total_ns * 1e-6,
                              row.count, row.name.substr(0, 90));
  }
}

void WriteProfile(const FinalizedProfile& profile, int top, std::ostream& out) {
  out << "\nprocess " << profile.pid << " (" << profile.process_name
      << ", rank " << profile.rank << ")"
      << (profile.finished ? "" : ", which did not end in order") << "\n";
  for (const RegionSummary& region : profile.summary.regions) {
    WriteRegion(region, profile, top, out);
  }
  out << "  kept " << profile.summary.gpu_event_count << " GPU events, "
      << profile.summary.launch_count << " API calls, " << profile.span_count
      << " spans; left out " << profile.outside_count
      << " made outside of regions; dropped " << profile.dropped_count << "\n";
  if (profile.wall_ns > 0) {
    out << absl::StreamFormat(
        "  overhead measured %.3f ms of %.3f ms (%.2f %%), %.0f ns a span%s\n",
        profile.overhead_ns * 1e-6, profile.wall_ns * 1e-6,
        100.0 * profile.overhead_ns / profile.wall_ns, profile.span_cost_ns,
        profile.kernel_count == 0
            ? ""
            : "; what CUPTI adds to each launch is not in it");
  }
  if (!profile.cupti.empty() && profile.cupti != "not needed") {
    out << "  CUPTI: " << profile.cupti << "\n";
  }
  for (const std::string& message : profile.messages) {
    out << "  warning: " << message << "\n";
  }
  out << "  " << profile.trace_path << "\n  " << profile.stream_path << "\n  "
      << profile.summary_path << "\n";
}

}  // namespace

void WriteProfileReport(const std::vector<FinalizedProfile>& profiles,
                        const ProgramExit& exit, int top, std::ostream& out) {
  out << absl::StreamFormat(
      "\nprofile_run: %s after %.3f s, %d process%s\n",
      exit.signal != 0 ? absl::StrCat("signal ", exit.signal)
                       : absl::StrCat("exit ", exit.code),
      exit.wall_ns * 1e-9, profiles.size(), profiles.size() == 1 ? "" : "es");
  for (const FinalizedProfile& profile : profiles) {
    WriteProfile(profile, top, out);
  }
  if (!profiles.empty()) {
    out << "next: trace_report " << profiles.front().trace_path << "\n";
  }
}

}  // namespace firstframe
