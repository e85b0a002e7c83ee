// Renders the result of weight_bench: a table for people, a document for
// programs (docs/formats/weight_bench.md), a row of FastVideo's table.

#ifndef LIB_LOAD_WEIGHT_BENCH_REPORT_H_
#define LIB_LOAD_WEIGHT_BENCH_REPORT_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "lib/cuda/runtime.h"
#include "lib/dist/launch.h"
#include "lib/host/machine.h"
#include "lib/load/cache_state.h"
#include "lib/load/file_system.h"
#include "lib/load/memory_budget.h"
#include "lib/load/weight_bench_types.h"

namespace firstframe {

// Where and how the result was measured.
struct WeightBenchContext {
  Machine machine;
  MemoryBudget memory;
  std::string path;  // of the checkpoint
  FileSystem file_system;
  CacheMode cache = CacheMode::kAsIs;
  int warmup = 0;
  Launch launch;
  std::string transport;               // "none", "nccl", "mpi"
  std::string transparent_huge_pages;  // "[madvise]" of sysfs; empty: unknown
  // Empty without a device.
  std::optional<cuda::DeviceProperties> device;
  cuda::Versions versions;
  std::string pcie_link;  // "32.0 GT/s x16", sampled after the loads
  std::string pcie_link_max;
};

// Reads what can be read of the machine for `path`. Never fails.
WeightBenchContext ReadWeightBenchContext(
    const std::string& path,
    const std::optional<cuda::DeviceProperties>& device);

void WriteWeightBenchText(const WeightBenchResult& result,
                          const WeightBenchContext& context, std::ostream& out);
void WriteWeightBenchJson(const WeightBenchResult& result,
                          const WeightBenchContext& context, std::ostream& out);
// A GitHub table in the shape of FastVideo's: GPUs, independent read, sync
// broadcast, speed-up, then ours.
void WriteWeightBenchGithub(const WeightBenchResult& result,
                            const WeightBenchContext& context,
                            std::ostream& out);

// The mode that speed-ups are over: FastVideo's independent read where it was
// run (one rank: to_gpu), else to_cpu; null when none of them was.
const ModeResult* FindBaseline(const WeightBenchResult& result,
                               LoadMode for_mode);

}  // namespace firstframe

#endif  // LIB_LOAD_WEIGHT_BENCH_REPORT_H_
