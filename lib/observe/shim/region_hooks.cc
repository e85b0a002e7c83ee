// NVTX ranges. The NVTX header in a program loads the library that
// NVTX_INJECTION64_PATH names at its first call and asks it for functions
// (nvtx3/nvToolsExt.h, version 3: table and callback numbers below are its).

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/observe/shim/record.h"

namespace firstframe::shim {
namespace {

// Enough to see how a run begins; later ranges cost one comparison.
constexpr uint64_t kMaxRegions = 2000;
constexpr int kMaxDepth = 12;
constexpr size_t kMaxName = 80;

struct OpenRange {
  int64_t start_ns;
  char name[kMaxName];
};

__thread OpenRange ranges[kMaxDepth] __attribute__((tls_model("initial-exec")));
__thread int depth __attribute__((tls_model("initial-exec"))) = 0;
std::atomic<uint64_t> num_regions;

// nvtxEventAttributes_t, version 2 of its layout.
struct Attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t colour_type;
  uint32_t colour;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
};
static_assert(offsetof(Attributes, message) == 40);
constexpr int32_t kAsciiMessage = 1;

int Push(const char* name) {
  EventHeader* const header = Header();
  const int level = depth++;
  if (header == nullptr || level >= kMaxDepth || level < 0) return level;
  OpenRange& range = ranges[level];
  range.start_ns = NowNs();
  ::snprintf(range.name, sizeof(range.name), "%s", name);
  int64_t none = 0;
  header->first_region_ns.compare_exchange_strong(none, range.start_ns);
  return level;
}

int Pop() {
  const int level = --depth;
  if (level < 0) {
    depth = 0;
    return -1;
  }
  if (level >= kMaxDepth ||
      num_regions.fetch_add(1, std::memory_order_relaxed) >= kMaxRegions) {
    return level;
  }
  Record({.kind = EventKind::kRegion,
          .name = ranges[level].name,
          .start_ns = ranges[level].start_ns,
          .end_ns = NowNs(),
          .value = static_cast<uint64_t>(level)});
  return level;
}

const char* MessageOf(const Attributes* attributes) {
  const bool is_ascii = attributes != nullptr &&
                        attributes->message_type == kAsciiMessage &&
                        attributes->message != nullptr;
  return is_ascii ? attributes->message : "(range)";
}

int PushA(const char* name) { return Push(name != nullptr ? name : "(range)"); }
int PushW(const wchar_t*) { return Push("(range)"); }
int PushEx(const Attributes* attributes) { return Push(MessageOf(attributes)); }
int DomainPushEx(void*, const Attributes* attributes) {
  return Push(MessageOf(attributes));
}
int DomainPop(void*) { return Pop(); }

struct CallbackTable {
  size_t size;
  int (*get_module_functions)(int module, void**** table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

constexpr uint32_t kCallbacksId = 1;
constexpr int kCoreModule = 1, kCore2Module = 5;

void Install(const CallbackTable& callbacks, int module, unsigned index,
             void* function) {
  void*** table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_functions(module, &table, &size) == 0 ||
      index >= size || table == nullptr || table[index] == nullptr) {
    return;
  }
  *table[index] = function;
}

}  // namespace
}  // namespace firstframe::shim

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    firstframe::shim::GetExportTable get_export_table) {
  using namespace firstframe::shim;
  const auto* const callbacks =
      static_cast<const CallbackTable*>(get_export_table(kCallbacksId));
  if (Header() == nullptr || callbacks == nullptr ||
      callbacks->size < sizeof(CallbackTable)) {
    return 0;
  }
  Install(*callbacks, kCoreModule, 8, reinterpret_cast<void*>(PushEx));
  Install(*callbacks, kCoreModule, 9, reinterpret_cast<void*>(PushA));
  Install(*callbacks, kCoreModule, 10, reinterpret_cast<void*>(PushW));
  Install(*callbacks, kCoreModule, 11, reinterpret_cast<void*>(Pop));
  Install(*callbacks, kCore2Module, 4, reinterpret_cast<void*>(DomainPushEx));
  Install(*callbacks, kCore2Module, 5, reinterpret_cast<void*>(DomainPop));
  return 1;
}
