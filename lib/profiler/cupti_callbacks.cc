// The part of CuptiCollector that takes API calls by callbacks.

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "lib/profiler/cupti_collector.h"

namespace firstframe {
namespace {

// Takes "_v7000" away.
absl::string_view WithoutVersion(absl::string_view name) {
  const size_t at = name.rfind("_v");
  if (at == absl::string_view::npos || at + 2 == name.size()) return name;
  const absl::string_view digits = name.substr(at + 2);
  return digits.find_first_not_of("0123456789") == absl::string_view::npos
             ? name.substr(0, at)
             : name;
}

// A function's domain and callback id in one number.
uint32_t FunctionNumber(int domain, uint32_t cbid) {
  return static_cast<uint32_t>(domain) * CuptiCollector::kMaxCallbackId + cbid;
}

}  // namespace

std::atomic<uint32_t> CuptiCollector::switched_on_ = 0;

std::string ApiCallName(absl::string_view callback_name) {
  absl::string_view name = WithoutVersion(callback_name);
  // A thread's own default stream; what CUDA 13's compiler calls for <<<>>>.
  if (!absl::ConsumeSuffix(&name, "_ptsz")) absl::ConsumeSuffix(&name, "_ptds");
  absl::ConsumePrefix(&name, "__");
  return std::string(name);
}

bool IsInterestingApiCall(absl::string_view name) {
  if (absl::StartsWith(name, "cuda")) {
    for (absl::string_view word :
         {"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "Free",
          "StreamWaitEvent", "HostAlloc", "Graph"}) {
      if (absl::StrContains(name, word)) {
        // Building a graph node by node is no work of the device's.
        return word != "Graph" || absl::StrContains(name, "GraphInstantiate") ||
               absl::StrContains(name, "GraphLaunch");
      }
    }
    return false;
  }
  // The driver's side of runtime calls would only repeat them.
  return absl::StartsWith(name, "cuLaunch") || name == "cuGraphLaunch";
}

void CuptiCollector::FindFunctions() {
  for (const int domain : {cupti::kDomainDriver, cupti::kDomainRuntime}) {
    for (uint32_t cbid = 1; cbid < kMaxCallbackId; ++cbid) {
      const char* name = nullptr;
      if (api_.get_callback_name(domain, cbid, &name) == cupti::kSuccess &&
          name != nullptr &&
          (options_.all_api_calls || IsInterestingApiCall(ApiCallName(name)))) {
        functions_.push_back(FunctionNumber(domain, cbid));
      }
    }
  }
}

void CuptiCollector::SwitchCallbacks(bool on) {
  if (on) switched_on_.fetch_add(1, std::memory_order_relaxed);
  for (const uint32_t function : functions_) {
    api_.enable_callback(on ? 1 : 0, subscriber_,
                         static_cast<int>(function / kMaxCallbackId),
                         function % kMaxCallbackId);
  }
}

void CuptiCollector::OnCallback(void* self, int domain, uint32_t cbid,
                                const void* data) {
  CuptiCallHandler* const calls =
      static_cast<CuptiCollector*>(self)->options_.calls;
  if (calls == nullptr) return;
  const auto& call = *static_cast<const cupti::CallbackData*>(data);
  // The driver's side of a runtime call would only repeat it.
  // Callbacks may be switched off before the call ends: what was noted before
  // they were switched on again does not count.
  static thread_local uint32_t in_runtime_since = 0;
  const uint32_t now = switched_on_.load(std::memory_order_relaxed);
  if (domain == cupti::kDomainRuntime) {
    in_runtime_since = call.site == cupti::kSiteEnter ? now : 0;
  } else if (in_runtime_since == now) {
    return;
  }
  if (call.site == cupti::kSiteEnter) {
    *call.correlation_data = static_cast<uint64_t>(calls->OnCallEnter());
  } else if (*call.correlation_data != 0) {  // else entered before all began
    calls->OnCallExit(static_cast<int64_t>(*call.correlation_data),
                      FunctionNumber(domain, cbid), call.correlation_id);
  }
}

CuptiCollector::Function CuptiCollector::FunctionOf(uint32_t function) const {
  const int domain = static_cast<int>(function / kMaxCallbackId);
  const uint32_t cbid = function % kMaxCallbackId;
  const char* name = nullptr;
  if (api_.get_callback_name(domain, cbid, &name) != cupti::kSuccess ||
      name == nullptr) {
    name = "unknown";
  }
  return {.name = ApiCallName(name),
          .cbid = cbid,
          .is_driver = domain == cupti::kDomainDriver};
}

}  // namespace firstframe
