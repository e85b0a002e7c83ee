#include "lib/trace/trace_event.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace firstframe {

TraceEventKind TraceEventKindOf(absl::string_view category) {
  struct Entry {
    absl::string_view name;
    TraceEventKind kind;
  };
  // In order of frequency. Names before 2021 were capitalised, without prefix.
  static constexpr Entry kEntries[] = {
      {"python_function", TraceEventKind::kPythonFunction},
      {"kernel", TraceEventKind::kKernel},
      {"cpu_op", TraceEventKind::kCpuOp},
      {"cuda_runtime", TraceEventKind::kRuntime},
      {"cuda_driver", TraceEventKind::kDriver},
      {"gpu_memcpy", TraceEventKind::kMemcpy},
      {"gpu_memset", TraceEventKind::kMemset},
      {"user_annotation", TraceEventKind::kUserAnnotation},
      {"gpu_user_annotation", TraceEventKind::kGpuUserAnnotation},
      {"cuda_sync", TraceEventKind::kSync},
      {"overhead", TraceEventKind::kOverhead},
      {"hip_runtime", TraceEventKind::kRuntime},
      {"xpu_runtime", TraceEventKind::kRuntime},
      {"operator", TraceEventKind::kCpuOp},
      {"runtime", TraceEventKind::kRuntime},
      {"memcpy", TraceEventKind::kMemcpy},
      {"memset", TraceEventKind::kMemset},
  };
  for (const Entry& entry : kEntries) {
    if (entry.name.size() == category.size() && entry.name == category) {
      return entry.kind;
    }
  }
  if (!category.empty() && absl::ascii_isupper(category[0])) {
    for (const Entry& entry : kEntries) {
      if (absl::EqualsIgnoreCase(entry.name, category)) return entry.kind;
    }
  }
  return TraceEventKind::kOther;
}

}  // namespace firstframe
