// ff_offload_*: lib/offload.

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/frozen_store.h"
#include "lib/offload/module.h"

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;

struct ff_offload {
  explicit ff_offload(std::vector<firstframe::OffloadTensor> tensors)
      : module(std::move(tensors)) {}
  firstframe::OffloadModule module;
  std::unique_ptr<firstframe::FrozenStore> store;  // ends before the module
};

namespace {

absl::StatusOr<firstframe::OffloadTensor> ReadTensor(
    const ff_tensor_info& from) {
  ff_tensor_info info;
  FF_RETURN_IF_ERROR(firstframe::c_api::ReadStruct(&from, "tensors", info));
  FF_RETURN_IF_ERROR(NotNull(info.name, "tensors: name"));
  if (info.dtype < 0 || info.dtype >= firstframe::kNumDTypes || info.ndim < 0 ||
      (info.ndim > 0 && info.shape == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", info.name,
                                                   "': dtype is ", info.dtype,
                                                   ", ndim ", info.ndim));
  }
  firstframe::OffloadTensor tensor;
  tensor.name = info.name;
  tensor.dtype = static_cast<firstframe::DType>(info.dtype);
  tensor.shape.assign(info.shape, info.shape + info.ndim);
  const auto size = firstframe::CheckedSizeBytes(tensor.dtype, tensor.shape);
  if (!size || static_cast<uint64_t>(*size) != info.size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", info.name, "': size_bytes is ",
                     info.size_bytes, ", which is not what its shape takes"));
  }
  tensor.size_bytes = info.size_bytes;
  tensor.data = static_cast<std::byte*>(info.data);
  tensor.device = info.device;
  return tensor;
}

}  // namespace

extern "C" {

ff_status ff_offload_create(const ff_tensor_info* tensors, size_t count,
                            ff_offload** offload) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(offload, "offload"));
    if (count > 0) FF_RETURN_IF_ERROR(NotNull(tensors, "tensors"));
    std::vector<firstframe::OffloadTensor> read;
    for (size_t i = 0; i < count; ++i) {
      FF_ASSIGN_OR_RETURN(firstframe::OffloadTensor tensor,
                          ReadTensor(tensors[i]));
      read.push_back(std::move(tensor));
    }
    firstframe::cuda::Runtime& runtime = firstframe::cuda::GetRuntime();
    const auto devices = runtime.DeviceCount();
    const bool has_device = devices.ok() && *devices > 0;
    auto made = std::make_unique<ff_offload>(std::move(read));
    FF_ASSIGN_OR_RETURN(made->store,
                        firstframe::FrozenStore::Create(
                            &made->module, has_device ? &runtime : nullptr));
    *offload = made.release();
    return absl::OkStatus();
  });
}

ff_status ff_offload_load(ff_offload* offload, int32_t device, void* stream) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(offload, "offload"));
    return offload->store->Load(device, stream);
  });
}

ff_status ff_offload_unload(ff_offload* offload, void* stream) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(offload, "offload"));
    return offload->store->Unload(stream);
  });
}

ff_status ff_offload_wait(ff_offload* offload) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(offload, "offload"));
    return offload->store->Wait();
  });
}

ff_status ff_offload_place(const ff_offload* offload, size_t index, void** data,
                           int32_t* device) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(offload, "offload"));
    FF_RETURN_IF_ERROR(NotNull(data, "data"));
    FF_RETURN_IF_ERROR(NotNull(device, "device"));
    const auto tensors = offload->module.tensors();
    if (index >= tensors.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("tensor ", index, " of a module of ", tensors.size()));
    }
    *data = tensors[index].data;
    *device = tensors[index].device;
    return absl::OkStatus();
  });
}

void ff_offload_destroy(ff_offload* offload) { delete offload; }

}  // extern "C"
