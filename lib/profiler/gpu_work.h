// A device's kernel, copy or memset as a trace shows it, from CUPTI's records.

#ifndef LIB_PROFILER_GPU_WORK_H_
#define LIB_PROFILER_GPU_WORK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "lib/profiler/cupti_abi.h"

namespace firstframe {

struct GpuWork {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  const char* category = "";
  const std::string* name = nullptr;  // its decoder's
  uint32_t device = 0, context = 0, stream = 0, correlation = 0;
  uint32_t region = 0;  // that launched it; 0: none
  int64_t bytes = -1;   // copies and memsets; -1: a kernel
  int32_t grid[3] = {}, block[3] = {};
  int32_t registers = 0, shared_memory = 0;
  uint64_t graph_node = 0;
  uint32_t graph = 0;  // 0: not launched by a graph
};

// Keeps each name once, as Kineto spells it: kernels demangled,
// "Memcpy HtoD (Pageable -> Device)". Names live as long as the decoder. Not
// thread-safe.
class GpuWorkDecoder {
 public:
  GpuWork Kernel(const cupti::KernelRecord& record);
  GpuWork Memcpy(const cupti::MemcpyRecord& record);
  GpuWork Memset(const cupti::MemsetRecord& record);

 private:
  template <typename Make>
  const std::string* Name(absl::string_view key, Make make);

  absl::flat_hash_map<std::string, std::unique_ptr<std::string>> names_;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_GPU_WORK_H_
