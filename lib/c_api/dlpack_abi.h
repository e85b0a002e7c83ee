// The structs of DLPack 0.x (github.com/dmlc/dlpack, include/dlpack/dlpack.h,
// read 2026-11): what Python's __dlpack__ capsules called "dltensor" hold.

#ifndef LIB_C_API_DLPACK_ABI_H_
#define LIB_C_API_DLPACK_ABI_H_

#include <cstdint>

extern "C" {

struct DLDevice {
  int32_t device_type;  // 1: host, 2: CUDA
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // null: row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

}  // extern "C"

#endif  // LIB_C_API_DLPACK_ABI_H_
