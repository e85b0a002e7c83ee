#include "lib/c_api/border.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "lib/base/version.h"
#include "lib/cuda/runtime.h"

namespace firstframe::c_api {
namespace {

thread_local std::string last_error;

}  // namespace

ff_status Report(const absl::Status& status) {
  if (status.ok()) return FF_OK;
  last_error = std::string(status.message());
  // Codes that C callers are not told of mean a bug of ours.
  const int code = static_cast<int>(status.code());
  return code <= FF_DATA_LOSS && status.code() != absl::StatusCode::kUnknown
             ? static_cast<ff_status>(code)
             : FF_INTERNAL;
}

ff_status ReportShort(ff_status code, const char* message) noexcept {
  last_error = message;
  return code;
}

char* CopyText(absl::string_view text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

absl::Status NotNull(const void* pointer, absl::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

}  // namespace firstframe::c_api

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;

extern "C" {

int32_t ff_abi_version(void) { return FIRSTFRAME_ABI_VERSION; }

const char* ff_version(void) {
  static const std::string* const version = [] {
    const firstframe::BuildInfo info = firstframe::GetBuildInfo();
    return new std::string(absl::StrCat("firstframe ", info.version,
                                        " (commit ", info.commit, ", CUDA ",
                                        info.cuda_toolkit, ")"));
  }();
  return version->c_str();
}

const char* ff_last_error(void) {
  return firstframe::c_api::last_error.c_str();
}

void ff_free(char* text) { std::free(text); }

ff_status ff_device_count(int32_t* count) {
  return Guard([&]() -> absl::Status {
    if (absl::Status s = NotNull(count, "count"); !s.ok()) return s;
    const auto found = firstframe::cuda::GetRuntime().DeviceCount();
    *count = found.ok() ? *found : 0;
    return absl::OkStatus();
  });
}

}  // extern "C"
