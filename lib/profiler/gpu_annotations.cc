#include "lib/profiler/gpu_annotations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_scan.h"

namespace firstframe {

void GpuAnnotations::AddRegion(int64_t id, absl::string_view name,
                               int64_t step) {
  Entry& entry = entries_[id];
  entry.name = std::string(name);
  entry.step = step;
}

void GpuAnnotations::AddWork(int64_t id, int64_t device, int64_t stream,
                             int64_t start_ns, int64_t end_ns) {
  const auto [found, added] = entries_[id].streams.try_emplace(
      {device, stream}, Extent{start_ns, end_ns});
  if (added) return;
  found->second.start_ns = std::min(found->second.start_ns, start_ns);
  found->second.end_ns = std::max(found->second.end_ns, end_ns);
}

absl::Status GpuAnnotations::Write(
    bool with_steps,
    absl::FunctionRef<absl::Status(const std::string&)> take) const {
  for (const auto& [id, entry] : entries_) {
    // The region's own span was lost: its name is not known.
    if (entry.name.empty()) continue;
    for (const auto& [place, extent] : entry.streams) {
      const auto write = [&, id = id, device = place.first,
                          stream = place.second](absl::string_view name) {
        return take(absl::StrCat(
            "{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"",
            name, "\", \"pid\": ", device, ", \"tid\": ", stream, ", \"ts\": ",
            FormatMicroseconds(extent.start_ns - 1), ", \"dur\": ",
            FormatMicroseconds(extent.end_ns - extent.start_ns + 2),
            ", \"args\": {\"External id\": ", id, "}}"));
      };
      if (with_steps && entry.step >= 0) {
        FF_RETURN_IF_ERROR(write(absl::StrCat("ProfilerStep#", entry.step)));
      }
      FF_RETURN_IF_ERROR(write(entry.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace firstframe
