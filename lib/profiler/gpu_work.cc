#include "lib/profiler/gpu_work.h"

#include <cxxabi.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace firstframe {
namespace {

const char* CopyKindName(uint8_t kind) {
  constexpr const char* kNames[] = {"unknown", "HtoD", "DtoH", "HtoA",
                                    "AtoH",    "AtoA", "AtoD", "DtoA",
                                    "DtoD",    "HtoH", "PtoP"};
  return kind < 11 ? kNames[kind] : "unknown";
}

const char* MemoryKindName(uint32_t kind) {
  constexpr const char* kNames[] = {"Unknown",       "Pageable",      "Pinned",
                                    "Device",        "Array",         "Managed",
                                    "Device Static", "Managed Static"};
  return kind < 8 ? kNames[kind] : "Unknown";
}

std::string Demangle(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string demangled = text;
  std::free(text);
  return demangled;
}

// What kernels, copies and memsets have alike.
template <typename Record>
GpuWork Common(const Record& record, const char* category) {
  GpuWork work;
  work.start_ns = static_cast<int64_t>(record.start);
  work.end_ns = static_cast<int64_t>(record.end);
  work.category = category;
  work.device = record.device_id;
  work.context = record.context_id;
  work.stream = record.stream_id;
  work.correlation = record.correlation_id;
  work.graph_node = record.graph_node_id;
  work.graph = record.graph_id;
  return work;
}

}  // namespace

template <typename Make>
const std::string* GpuWorkDecoder::Name(absl::string_view key, Make make) {
  if (const auto found = names_.find(key); found != names_.end()) {
    return found->second.get();
  }
  auto& name = names_[key];
  name = std::make_unique<std::string>(make());
  return name.get();
}

GpuWork GpuWorkDecoder::Kernel(const cupti::KernelRecord& record) {
  GpuWork work = Common(record, "kernel");
  const char* const mangled =
      record.name == nullptr ? "unknown kernel" : record.name;
  work.name = Name(mangled, [&] { return Demangle(mangled); });
  for (int i = 0; i < 3; ++i) {
    work.grid[i] = record.grid[i];
    work.block[i] = record.block[i];
  }
  work.registers = record.registers_per_thread;
  work.shared_memory =
      record.static_shared_memory + record.dynamic_shared_memory;
  return work;
}

GpuWork GpuWorkDecoder::Memcpy(const cupti::MemcpyRecord& record) {
  GpuWork work = Common(record, "gpu_memcpy");
  const char key[] = {'c', static_cast<char>(record.copy_kind),
                      static_cast<char>(record.src_kind),
                      static_cast<char>(record.dst_kind)};
  work.name = Name(absl::string_view(key, sizeof(key)), [&] {
    return absl::StrCat("Memcpy ", CopyKindName(record.copy_kind), " (",
                        MemoryKindName(record.src_kind), " -> ",
                        MemoryKindName(record.dst_kind), ")");
  });
  work.bytes = static_cast<int64_t>(record.bytes);
  return work;
}

GpuWork GpuWorkDecoder::Memset(const cupti::MemsetRecord& record) {
  GpuWork work = Common(record, "gpu_memset");
  const char key[] = {'s', static_cast<char>(record.memory_kind), '\0'};
  work.name = Name(absl::string_view(key, sizeof(key)), [&] {
    return absl::StrCat("Memset (", MemoryKindName(record.memory_kind), ")");
  });
  work.bytes = static_cast<int64_t>(record.bytes);
  return work;
}

}  // namespace firstframe
