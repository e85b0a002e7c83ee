// libcuda.so.1 for tests without a GPU: one device, one context, and events
// whose work is done at once.

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

int context;

}  // namespace

extern "C" {

int cuCtxGetCurrent(void** current) {
  *current = &context;
  return 0;
}
int cuCtxPushCurrent_v2(void*) { return 0; }
int cuCtxPopCurrent_v2(void** popped) {
  *popped = &context;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new int64_t(0);
  return 0;
}
int cuEventRecord(void* event, void*) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *static_cast<int64_t*>(event) =
      int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return 0;
}
int cuEventQuery(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  *milliseconds =
      static_cast<float>(static_cast<double>(*static_cast<int64_t*>(end) -
                                             *static_cast<int64_t*>(start)) *
                         1e-6);
  return 0;
}
int cuStreamIsCapturing(void*, int* capturing) {
  *capturing = 0;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}
int cuDeviceGetName(char* name, int, int) {
  std::strcpy(name, "Fake GPU");
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = 1 << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) {
  *value = 1;
  return 0;
}

}  // extern "C"
