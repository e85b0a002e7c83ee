// NVTX ranges. The NVTX header in a program loads the library that
// NVTX_INJECTION64_PATH names at its first call and asks it for functions
// (lib/profiler/nvtx_abi.h). lib/profiler/nvtx_injection.h takes more of them,
// with libraries that may not be here.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/observe/shim/record.h"
#include "lib/profiler/nvtx_abi.h"

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

using nvtx::EventAttributes;

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

const char* MessageOf(const EventAttributes* attributes) {
  const bool is_ascii = attributes != nullptr &&
                        attributes->message_type == nvtx::kMessageA &&
                        attributes->message != nullptr;
  return is_ascii ? static_cast<const char*>(attributes->message) : "(range)";
}

int PushA(const char* name) { return Push(name != nullptr ? name : "(range)"); }
int PushW(const wchar_t*) { return Push("(range)"); }
int PushEx(const EventAttributes* attributes) {
  return Push(MessageOf(attributes));
}
int DomainPushEx(void*, const EventAttributes* attributes) {
  return Push(MessageOf(attributes));
}
int DomainPop(void*) { return Pop(); }

}  // namespace
}  // namespace firstframe::shim

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    firstframe::nvtx::GetExportTable get_export_table) {
  using namespace firstframe::shim;
  namespace nvtx = firstframe::nvtx;
  const nvtx::Callbacks* const callbacks =
      nvtx::FindCallbacks(get_export_table);
  if (Header() == nullptr || callbacks == nullptr) return 0;
  nvtx::Install(*callbacks, nvtx::kCore, nvtx::kRangePushEx, PushEx);
  nvtx::Install(*callbacks, nvtx::kCore, nvtx::kRangePushA, PushA);
  nvtx::Install(*callbacks, nvtx::kCore, nvtx::kRangePushW, PushW);
  nvtx::Install(*callbacks, nvtx::kCore, nvtx::kRangePop, Pop);
  nvtx::Install(*callbacks, nvtx::kCore2, nvtx::kDomainRangePushEx,
                DomainPushEx);
  nvtx::Install(*callbacks, nvtx::kCore2, nvtx::kDomainRangePop, DomainPop);
  return 1;
}
