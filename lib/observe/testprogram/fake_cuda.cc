// Stands in for libcuda.so.1: checks the arguments that arrive through the
// hooks, and takes as long as it is told to.

#include <stdint.h>
#include <string.h>
#include <time.h>

namespace {

constexpr int kInvalidValue = 1;
constexpr uintptr_t kDeviceMemory = 0x700000000000;

void Work(long milliseconds) {
  const timespec time = {0, milliseconds * 1000000};
  nanosleep(&time, nullptr);
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  Work(2);
  return flags == 0 ? 0 : kInvalidValue;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  Work(3);
  *context = reinterpret_cast<void*>(0x1234);
  return device == 0 ? 0 : kInvalidValue;
}
int cuModuleLoadData(void** module, const void* image) {
  Work(1);
  *module = nullptr;
  return strcmp(static_cast<const char*>(image), "image") == 0 ? 0
                                                               : kInvalidValue;
}
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes,
                         void* stream) {
  Work(1);
  return to == kDeviceMemory && from != nullptr && bytes == 4096 &&
                 stream == reinterpret_cast<void*>(7)
             ? 0
             : kInvalidValue;
}
int cuMemcpyAsync(uintptr_t, uintptr_t, size_t bytes, void*) {
  Work(1);
  return bytes == 512 ? 0 : kInvalidValue;
}
int cuMemcpyAsync_ptsz(uintptr_t, uintptr_t, size_t bytes, void*) {
  return bytes == 100 ? 0 : kInvalidValue;
}
int cuPointerGetAttribute(void* data, int attribute, uintptr_t address) {
  if (attribute != 2) return kInvalidValue;
  if (address - kDeviceMemory < 4096) {
    *static_cast<unsigned*>(data) = 2;
    return 0;
  }
  // Page-locked memory begins where the test says, by a mark of its own.
  if (*reinterpret_cast<const int*>(address) != 0x10CCED) return kInvalidValue;
  *static_cast<unsigned*>(data) = 1;
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** parameters, void** extra) {
  return function == reinterpret_cast<void*>(1) && gx == 2 && gy == 3 &&
                 gz == 4 && bx == 5 && by == 6 && bz == 7 && shared == 8 &&
                 stream == reinterpret_cast<void*>(9) &&
                 parameters == reinterpret_cast<void**>(10) &&
                 extra == reinterpret_cast<void**>(11)
             ? 0
             : kInvalidValue;
}
int cuUnwatched(int value) { return value + 1; }

int cuGetProcAddress_v2(const char* symbol, void** function, int,
                        uint64_t flags, int* status) {
  *status = 0;
  const struct {
    const char* name;
    void* function;
  } table[] = {
      {"cuInit", reinterpret_cast<void*>(cuInit)},
      {"cuDevicePrimaryCtxRetain",
       reinterpret_cast<void*>(cuDevicePrimaryCtxRetain)},
      {"cuModuleLoadData", reinterpret_cast<void*>(cuModuleLoadData)},
      {"cuMemcpyHtoDAsync", reinterpret_cast<void*>(cuMemcpyHtoDAsync_v2)},
      {"cuMemcpyAsync", flags == 2 ? reinterpret_cast<void*>(cuMemcpyAsync_ptsz)
                                   : reinterpret_cast<void*>(cuMemcpyAsync)},
      {"cuLaunchKernel", reinterpret_cast<void*>(cuLaunchKernel)},
      {"cuGetProcAddress", reinterpret_cast<void*>(cuGetProcAddress_v2)},
  };
  for (const auto& entry : table) {
    if (strcmp(entry.name, symbol) != 0) continue;
    *function = entry.function;
    return 0;
  }
  *function = nullptr;
  *status = 1;
  return 500;
}

}  // extern "C"
