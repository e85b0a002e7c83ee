// Renders the result of offload_bench: a table for people, a document for
// programs (docs/formats/offload_bench.md).

#ifndef LIB_OFFLOAD_OFFLOAD_REPORT_H_
#define LIB_OFFLOAD_OFFLOAD_REPORT_H_

#include <optional>
#include <ostream>
#include <string>

#include "lib/cuda/runtime.h"
#include "lib/host/machine.h"
#include "lib/load/memory_budget.h"
#include "lib/offload/offload_bench.h"
#include "lib/offload/offload_result.h"

namespace firstframe {

// Where and how the result was measured.
struct OffloadContext {
  Machine machine;
  MemoryBudget memory;
  std::string source;  // the checkpoint's path, or "synthetic"
  std::optional<cuda::DeviceProperties> device;  // empty without one
};

void WriteOffloadText(const OffloadBenchResult& result,
                      const OffloadContext& context, std::ostream& out);
void WriteOffloadJson(const OffloadBenchResult& result,
                      const OffloadBenchOptions& options,
                      const OffloadContext& context, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_OFFLOAD_REPORT_H_
