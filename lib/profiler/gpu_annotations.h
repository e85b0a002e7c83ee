// The rows that show regions and steps above the kernels they launched.

#ifndef LIB_PROFILER_GPU_ANNOTATIONS_H_
#define LIB_PROFILER_GPU_ANNOTATIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Gathers, for each entry into a region, the time from its first work to its
// last on each stream. Regions and work may come in any order. Some 200 bytes
// an entry. Not thread-safe.
class GpuAnnotations {
 public:
  // `name` as JSON text without its quotes; `step` its ProfilerStep number, -1:
  // no step.
  void AddRegion(int64_t id, absl::string_view name, int64_t step);
  void AddWork(int64_t id, int64_t device, int64_t stream, int64_t start_ns,
               int64_t end_ns);

  // Hands over the events as Kineto writes them: category gpu_user_annotation,
  // process the device, thread the stream, a nanosecond longer at both ends
  // than the work. `with_steps`: also the steps that regions are.
  absl::Status Write(
      bool with_steps,
      absl::FunctionRef<absl::Status(const std::string&)> take) const;

 private:
  struct Extent {
    int64_t start_ns;
    int64_t end_ns;
  };
  struct Entry {
    std::string name;
    int64_t step = -1;
    std::map<std::pair<int64_t, int64_t>, Extent> streams;  // device, stream
  };
  std::map<int64_t, Entry> entries_;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_GPU_ANNOTATIONS_H_
