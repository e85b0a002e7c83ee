#include "lib/profiler/cupti_api.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/known_libraries.h"

namespace firstframe {
namespace {

constexpr uint32_t kOldestVersion = 18;  // CUDA 12.0

// The handle of a CUPTI that is mapped already, or null. A second copy in one
// process would not see the driver's callbacks.
void* FindMapped(std::string* path) {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (void* const handle = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
      *path = name;
      return handle;
    }
  }
  return nullptr;
}

template <typename Function>
bool Set(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(handle, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<CuptiApi> CuptiApi::Load(const cuda::LibrarySearch& search) {
  CuptiApi api;
  void* handle = FindMapped(&api.path);
  if (handle == nullptr) {
    FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                        cuda::DynamicLibrary::Open(cuda::kCupti, search));
    api.path = library.path();
    handle = ::dlopen(api.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) {
      return absl::UnavailableError(absl::StrCat(api.path, ": ", ::dlerror()));
    }
  }
  const bool complete =
      Set(handle, "cuptiGetVersion", &api.get_version) &&
      Set(handle, "cuptiGetResultString", &api.get_result_string) &&
      Set(handle, "cuptiActivityRegisterCallbacks", &api.register_callbacks) &&
      Set(handle, "cuptiActivityEnable", &api.enable) &&
      Set(handle, "cuptiActivityDisable", &api.disable) &&
      Set(handle, "cuptiActivityFlushAll", &api.flush_all) &&
      Set(handle, "cuptiActivityGetNextRecord", &api.get_next_record) &&
      Set(handle, "cuptiActivityGetNumDroppedRecords", &api.get_dropped) &&
      Set(handle, "cuptiActivitySetAttribute", &api.set_attribute) &&
      Set(handle, "cuptiGetCallbackName", &api.get_callback_name) &&
      Set(handle, "cuptiSubscribe", &api.subscribe) &&
      Set(handle, "cuptiUnsubscribe", &api.unsubscribe) &&
      Set(handle, "cuptiGetTimestamp", &api.get_timestamp);
  Set(handle, "cuptiSubscribe_v2", &api.subscribe_v2);
  Set(handle, "cuptiSetThreadIdType", &api.set_thread_id_type);
  Set(handle, "cuptiEnableCallback", &api.enable_callback);
  Set(handle, "cuptiActivityPushExternalCorrelationId", &api.push_external);
  Set(handle, "cuptiActivityPopExternalCorrelationId", &api.pop_external);
  if (!complete || api.get_version(&api.version) != cupti::kSuccess ||
      api.version < kOldestVersion) {
    return absl::UnavailableError(absl::StrCat(
        api.path, ": CUPTI of CUDA 12 or newer is needed, found version ",
        api.version));
  }
  return api;
}

std::string CuptiApi::Message(cupti::Result result) const {
  const char* text = nullptr;
  if (get_result_string(result, &text) == cupti::kSuccess && text != nullptr) {
    return text;
  }
  return absl::StrCat("CUPTI error ", result);
}

}  // namespace firstframe
