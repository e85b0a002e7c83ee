// NVTX 3's protocol with what is injected (nvtx3/nvtxDetail/nvtxTypes.h,
// nvToolsExt.h), declared here so that no toolkit is needed. Needs no library,
// not even C++'s: also what is preloaded into programs uses it.

#ifndef LIB_PROFILER_NVTX_ABI_H_
#define LIB_PROFILER_NVTX_ABI_H_

#include <stddef.h>
#include <stdint.h>

namespace firstframe::nvtx {

// NvtxExportTableID.
inline constexpr uint32_t kCallbacksTable = 1;

// NvtxCallbackModule, and the places of functions in its table.
inline constexpr int kCore = 1;
enum CoreId : unsigned {
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
};
inline constexpr int kCore2 = 5;
enum Core2Id : unsigned {
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

using Function = void (*)();
using FunctionTable = Function**;
struct Callbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, FunctionTable* table,
                                   unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

// nvtxEventAttributes_t; nvtxMessageType_t.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved0;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};
static_assert(offsetof(EventAttributes, message) == 40);
inline constexpr int32_t kMessageA = 1;           // char*
inline constexpr int32_t kMessageW = 2;           // wchar_t*
inline constexpr int32_t kMessageRegistered = 3;  // RegisterString's result

// The table of callbacks, or null where it is not what we know.
inline const Callbacks* FindCallbacks(GetExportTable get_export_table) {
  if (get_export_table == nullptr) return nullptr;
  const auto* const callbacks =
      static_cast<const Callbacks*>(get_export_table(kCallbacksTable));
  return callbacks != nullptr && callbacks->struct_size >= sizeof(Callbacks)
             ? callbacks
             : nullptr;
}

// Puts `function` into a module's table. Tables of other versions are shorter,
// or have holes: those places stay as they are. NVTX calls what injects before
// any other thread's range.
template <typename Signature>
void Install(const Callbacks& callbacks, int module, unsigned id,
             Signature* function) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 1 &&
      table != nullptr && id < size && table[id] != nullptr) {
    *table[id] = reinterpret_cast<Function>(function);
  }
}

}  // namespace firstframe::nvtx

#endif  // LIB_PROFILER_NVTX_ABI_H_
