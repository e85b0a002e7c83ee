#include "lib/dist/nccl.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/known_libraries.h"

namespace firstframe {

absl::StatusOr<Nccl> Nccl::Load(const cuda::LibrarySearch& search) {
  FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                      cuda::DynamicLibrary::Open(cuda::kNccl, search));
  Nccl nccl;
  nccl.path = library.path();
  absl::Status status;
  const auto find = [&](const char* name, auto* out) {
    absl::StatusOr<void*> symbol = library.FindSymbol(name);
    if (symbol.ok()) {
      *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(*symbol);
    } else if (status.ok()) {
      status = symbol.status();
    }
  };
  int (*get_version)(int*) = nullptr;
  find("ncclGetVersion", &get_version);
  find("ncclGetUniqueId", &nccl.GetUniqueId);
  find("ncclCommInitRankConfig", &nccl.CommInitRankConfig);
  find("ncclCommGetAsyncError", &nccl.CommGetAsyncError);
  find("ncclCommFinalize", &nccl.CommFinalize);
  find("ncclCommDestroy", &nccl.CommDestroy);
  find("ncclCommAbort", &nccl.CommAbort);
  find("ncclBroadcast", &nccl.Broadcast);
  find("ncclAllGather", &nccl.AllGather);
  find("ncclGetErrorString", &nccl.GetErrorString);
  FF_RETURN_IF_ERROR(status);
  FF_RETURN_IF_ERROR(
      nccl.ToStatus(get_version(&nccl.version), "ncclGetVersion"));
  return nccl;
}

absl::Status Nccl::ToStatus(int result, const char* call) const {
  if (result == kNcclSuccess || result == kNcclInProgress) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat(call, ": ", GetErrorString(result), " (", result, ")"));
}

}  // namespace firstframe
