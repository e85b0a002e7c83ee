#include "lib/profiler/nvtx_injection.h"

#include <atomic>
#include <cwchar>
#include <mutex>
#include <string>
#include <unordered_set>

#include "lib/base/utf8.h"
#include "lib/profiler/nvtx_abi.h"

namespace firstframe {
namespace {

using nvtx::EventAttributes;

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
      case nvtx::kMessageA:
        return take(
            absl::string_view(static_cast<const char*>(attributes->message)));
      case nvtx::kMessageW:
        return take(absl::string_view(
            Narrow(static_cast<const wchar_t*>(attributes->message))));
      case nvtx::kMessageRegistered:
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

}  // namespace

int AttachNvtx(void* get_export_table, NvtxHandler* to) {
  const nvtx::Callbacks* const callbacks = nvtx::FindCallbacks(
      reinterpret_cast<nvtx::GetExportTable>(get_export_table));
  if (callbacks == nullptr || to == nullptr) return 0;
  handler.store(to);
  const auto core = [&](nvtx::CoreId id, auto* function) {
    nvtx::Install(*callbacks, nvtx::kCore, id, function);
  };
  core(nvtx::kRangePushA, &RangePushA);
  core(nvtx::kRangePushW, &RangePushW);
  core(nvtx::kRangePushEx, &RangePushEx);
  core(nvtx::kRangePop, &Pop);
  core(nvtx::kRangeStartA, &RangeStartA);
  core(nvtx::kRangeStartW, &RangeStartW);
  core(nvtx::kRangeStartEx, &RangeStartEx);
  core(nvtx::kRangeEnd, &End);
  const auto core2 = [&](nvtx::Core2Id id, auto* function) {
    nvtx::Install(*callbacks, nvtx::kCore2, id, function);
  };
  core2(nvtx::kDomainRangePushEx, &DomainRangePushEx);
  core2(nvtx::kDomainRangePop, &DomainRangePop);
  core2(nvtx::kDomainRangeStartEx, &DomainRangeStartEx);
  core2(nvtx::kDomainRangeEnd, &DomainRangeEnd);
  core2(nvtx::kDomainRegisterStringA, &DomainRegisterStringA);
  core2(nvtx::kDomainRegisterStringW, &DomainRegisterStringW);
  core2(nvtx::kDomainCreateA, &DomainCreateA);
  core2(nvtx::kDomainCreateW, &DomainCreateW);
  return 1;
}

}  // namespace firstframe
