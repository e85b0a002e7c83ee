#include "lib/profiler/nvtx_injection.h"

#include <atomic>
#include <cstddef>
#include <cwchar>
#include <mutex>
#include <string>
#include <unordered_set>

#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// NVTX 3's ABI: nvtxDetail/nvtxTypes.h and nvToolsExt.h.
constexpr uint32_t kExportTableCallbacks = 1;
constexpr int kModuleCore = 1;
constexpr int kModuleCore2 = 5;

enum CoreId {
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
};
enum Core2Id {
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

using FunctionPointer = void (*)();
using FunctionTable = FunctionPointer**;
struct ExportTableCallbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, FunctionTable* table,
                                   unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t id);

struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved0;
  uint64_t payload;
  int32_t message_type;  // 1: char*, 2: wchar_t*, 3: registered string
  const void* message;
};

std::atomic<NvtxHandler*> handler = nullptr;

std::string Narrow(const wchar_t* text) {
  std::string narrow;
  if (text == nullptr) return narrow;
  for (; *text != L'\0'; ++text) {
    const auto code = static_cast<uint32_t>(*text);
    AppendUtf8(
        code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF) ? code : 0xFFFD,
        &narrow);
  }
  return narrow;
}

// Registered strings live as long as the process: their handles are addresses.
const std::string* Register(std::string text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& strings = *new std::unordered_set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return &*strings.insert(std::move(text)).first;
}

template <typename Take>
auto WithName(const EventAttributes* attributes, Take take) {
  if (attributes != nullptr && attributes->message != nullptr) {
    switch (attributes->message_type) {
      case 1:
        return take(
            absl::string_view(static_cast<const char*>(attributes->message)));
      case 2:
        return take(absl::string_view(
            Narrow(static_cast<const wchar_t*>(attributes->message))));
      case 3:
        return take(absl::string_view(
            *static_cast<const std::string*>(attributes->message)));
    }
  }
  return take(absl::string_view("(unnamed range)"));
}

absl::string_view OrUnnamed(const char* text) {
  return text == nullptr ? "(unnamed range)" : absl::string_view(text);
}

int Push(absl::string_view name) {
  handler.load(std::memory_order_relaxed)->OnPush(name);
  return 0;
}
int Pop() {
  handler.load(std::memory_order_relaxed)->OnPop();
  return 0;
}
uint64_t Begin(absl::string_view name) {
  return handler.load(std::memory_order_relaxed)->OnStart(name);
}
void End(uint64_t range) {
  handler.load(std::memory_order_relaxed)->OnEnd(range);
}

int RangePushA(const char* text) { return Push(OrUnnamed(text)); }
int RangePushW(const wchar_t* text) { return Push(Narrow(text)); }
int RangePushEx(const EventAttributes* a) { return WithName(a, Push); }
uint64_t RangeStartA(const char* text) { return Begin(OrUnnamed(text)); }
uint64_t RangeStartW(const wchar_t* text) { return Begin(Narrow(text)); }
uint64_t RangeStartEx(const EventAttributes* a) { return WithName(a, Begin); }
int DomainRangePushEx(void*, const EventAttributes* a) {
  return WithName(a, Push);
}
int DomainRangePop(void*) { return Pop(); }
uint64_t DomainRangeStartEx(void*, const EventAttributes* a) {
  return WithName(a, Begin);
}
void DomainRangeEnd(void*, uint64_t range) { End(range); }
const void* DomainRegisterStringA(void*, const char* text) {
  return Register(text == nullptr ? "" : text);
}
const void* DomainRegisterStringW(void*, const wchar_t* text) {
  return Register(Narrow(text));
}
// A null domain is the default one, whose calls some programs then skip.
const void* DomainCreateA(const char* text) {
  return Register(text == nullptr ? "" : text);
}
const void* DomainCreateW(const wchar_t* text) {
  return Register(Narrow(text));
}

struct Slot {
  int id;
  FunctionPointer function;
};

template <typename Function>
FunctionPointer Erase(Function* function) {
  return reinterpret_cast<FunctionPointer>(function);
}

void Fill(const ExportTableCallbacks& callbacks, int module,
          std::initializer_list<Slot> slots) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) != 1 ||
      table == nullptr) {
    return;
  }
  for (const Slot& slot : slots) {
    // Tables of other versions are shorter, or have holes.
    if (static_cast<unsigned>(slot.id) < size && table[slot.id] != nullptr) {
      *table[slot.id] = slot.function;
    }
  }
}

}  // namespace

int AttachNvtx(void* get_export_table, NvtxHandler* to) {
  if (get_export_table == nullptr || to == nullptr) return 0;
  const auto* const callbacks =
      static_cast<const ExportTableCallbacks*>(reinterpret_cast<GetExportTable>(
          get_export_table)(kExportTableCallbacks));
  if (callbacks == nullptr ||
      callbacks->struct_size < sizeof(ExportTableCallbacks)) {
    return 0;
  }
  handler.store(to);
  Fill(*callbacks, kModuleCore,
       {{kRangePushA, Erase(&RangePushA)},
        {kRangePushW, Erase(&RangePushW)},
        {kRangePushEx, Erase(&RangePushEx)},
        {kRangePop, Erase(&Pop)},
        {kRangeStartA, Erase(&RangeStartA)},
        {kRangeStartW, Erase(&RangeStartW)},
        {kRangeStartEx, Erase(&RangeStartEx)},
        {kRangeEnd, Erase(&End)}});
  Fill(*callbacks, kModuleCore2,
       {{kDomainRangePushEx, Erase(&DomainRangePushEx)},
        {kDomainRangePop, Erase(&DomainRangePop)},
        {kDomainRangeStartEx, Erase(&DomainRangeStartEx)},
        {kDomainRangeEnd, Erase(&DomainRangeEnd)},
        {kDomainRegisterStringA, Erase(&DomainRegisterStringA)},
        {kDomainRegisterStringW, Erase(&DomainRegisterStringW)},
        {kDomainCreateA, Erase(&DomainCreateA)},
        {kDomainCreateW, Erase(&DomainCreateW)}});
  return 1;
}

}  // namespace firstframe
