// libcupti.so.13 for tests without a GPU: records the launches that FakeLaunch
// makes as CUPTI does. Buffers are asked for when needed and delivered when
// flushed, kernels apart from calls and before them; times are CLOCK_REALTIME.
//
// FAKE_CUPTI_HOLDER: the name of a tool that holds it already.
// FAKE_CUPTI_FAILS: it is attached to and records nothing.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "lib/profiler/cupti_abi.h"

namespace {

using namespace firstframe::cupti;  // NOLINT: a file of this library's names

using Requested = void (*)(uint8_t**, size_t*, size_t*);
using Completed = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);

constexpr uint32_t kLaunchId = 211;
constexpr uint32_t kGetDeviceId = 17;
constexpr uint32_t kDriverLaunchId = 307;

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
};

std::mutex mutex;
Requested requested = nullptr;
Completed completed = nullptr;
std::set<int> kinds;
Buffer calls, work;
uint32_t last_correlation = 100;
thread_local std::vector<uint64_t> external;
using Callback = void (*)(void*, int, uint32_t, const void*);
Callback callback = nullptr;
void* callback_user = nullptr;
bool calls_back[3] = {};  // at launches, by domain

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// Sizes by kind, so that GetNextRecord can walk a buffer.
size_t SizeOf(int kind) {
  switch (kind) {
    case kConcurrentKernel:
      return sizeof(KernelRecord);
    case kExternalCorrelation:
      return sizeof(ExternalRecord);
    default:
      return sizeof(ApiRecord);
  }
}

void Deliver(Buffer* buffer) {
  if (buffer->data == nullptr) return;
  const Buffer full = *buffer;
  *buffer = {};
  completed(nullptr, 0, full.data, full.size, full.used);
}

template <typename Record>
void Put(const Record& record, Buffer* buffer) {
  if (buffer->data != nullptr && buffer->used + sizeof(record) > buffer->size) {
    Deliver(buffer);
  }
  if (buffer->data == nullptr) {
    size_t count = 0;
    requested(&buffer->data, &buffer->size, &count);
  }
  std::memcpy(buffer->data + buffer->used, &record, sizeof(record));
  buffer->used += sizeof(record);
}

void PutCall(Kind kind, uint32_t cbid, uint32_t correlation, uint64_t start) {
  if (kinds.count(kind) == 0) return;
  if (kinds.count(kExternalCorrelation) != 0 && !external.empty()) {
    ExternalRecord record = {};
    record.kind = kExternalCorrelation;
    record.external_kind = kExternalOurs;
    record.external_id = external.back();
    record.correlation_id = correlation;
    Put(record, &calls);
  }
  ApiRecord record = {};
  record.kind = kind;
  record.cbid = cbid;
  record.start = start;
  record.end = start + 2000;
  record.process_id = static_cast<uint32_t>(getpid());
  record.thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
  record.correlation_id = correlation;
  Put(record, &calls);
}

void CallBack(int domain, int32_t site, uint64_t* between) {
  if (!calls_back[domain]) return;
  CallbackData data = {};
  data.site = site;
  data.correlation_data = between;
  data.correlation_id = last_correlation;
  callback(callback_user, domain,
           domain == kDomainRuntime ? kLaunchId : kDriverLaunchId, &data);
}

}  // namespace

extern "C" {

// A launch on this thread, whose kernel of 3 us starts 5 us later. `is_driver`:
// by the driver's function, as Triton launches; the runtime's calls it, too.
void FakeLaunch(const char* kernel, bool is_driver) {
  const std::lock_guard<std::mutex> lock(mutex);
  const uint64_t now = Now();
  PutCall(kRuntime, kGetDeviceId, ++last_correlation, now);
  const uint32_t correlation = ++last_correlation;
  if (is_driver) {
    PutCall(kDriver, kDriverLaunchId, correlation, now);
  } else {
    PutCall(kRuntime, kLaunchId, correlation, now);
  }
  uint64_t runtime_data = 0, driver_data = 0;
  if (!is_driver) CallBack(kDomainRuntime, kSiteEnter, &runtime_data);
  CallBack(kDomainDriver, kSiteEnter, &driver_data);
  CallBack(kDomainDriver, kSiteExit, &driver_data);
  if (!is_driver) CallBack(kDomainRuntime, kSiteExit, &runtime_data);
  if (kinds.count(kConcurrentKernel) == 0) return;
  KernelRecord record = {};
  record.kind = kConcurrentKernel;
  record.start = now + 5000;
  record.end = now + 8000;
  record.context_id = 1;
  record.stream_id = 7;
  record.correlation_id = correlation;
  record.name = kernel;
  for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  Put(record, &work);
}

int cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return kSuccess;
}
int cuptiGetResultString(int, const char** text) {
  *text = "FAKE_ERROR";
  return kSuccess;
}
int cuptiActivityRegisterCallbacks(Requested request, Completed complete) {
  requested = request;
  completed = complete;
  return kSuccess;
}
int cuptiActivityEnable(int kind) {
  if (std::getenv("FAKE_CUPTI_FAILS") != nullptr) return 1;
  const std::lock_guard<std::mutex> lock(mutex);
  kinds.insert(kind);
  return kSuccess;
}
int cuptiActivityDisable(int kind) {
  const std::lock_guard<std::mutex> lock(mutex);
  kinds.erase(kind);
  return kSuccess;
}
int cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard<std::mutex> lock(mutex);
  Deliver(&work);
  Deliver(&calls);
  return kSuccess;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t size, void** record) {
  auto* next = static_cast<uint8_t*>(*record);
  if (next == nullptr) {
    next = buffer;
  } else {
    int kind = 0;
    std::memcpy(&kind, next, sizeof(kind));
    next += SizeOf(kind);
  }
  if (next >= buffer + size) return kMaxLimitReached;
  *record = next;
  return kSuccess;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 0;
  return kSuccess;
}
int cuptiActivitySetAttribute(int, size_t*, void*) { return kSuccess; }
int cuptiGetCallbackName(int domain, uint32_t cbid, const char** name) {
  if (domain == kDomainRuntime) {
    *name =
        cbid == kLaunchId ? "cudaLaunchKernel_v7000" : "cudaGetDevice_v3020";
  } else {
    *name = cbid == kDriverLaunchId ? "cuLaunchKernel" : "cuCtxGetCurrent";
  }
  return kSuccess;
}
int cuptiSubscribe(void**, void*, void*) { return kMultipleSubscribers; }
int cuptiEnableCallback(uint32_t enable, void*, int domain, uint32_t cbid) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (cbid == (domain == kDomainRuntime ? kLaunchId : kDriverLaunchId)) {
    calls_back[domain] = enable != 0;
  }
  return kSuccess;
}
int cuptiSubscribe_v2(void** subscriber, Callback function, void* user,
                      SubscriberParams* params) {
  if (const char* const holder = std::getenv("FAKE_CUPTI_HOLDER")) {
    std::strncpy(params->old_subscriber_name, holder,
                 params->old_subscriber_size);
    return kMultipleSubscribers;
  }
  callback = function;
  callback_user = user;
  *subscriber = &kinds;
  return kSuccess;
}
int cuptiUnsubscribe(void*) { return kSuccess; }
int cuptiGetTimestamp(uint64_t* time) {
  *time = Now();
  return kSuccess;
}
int cuptiSetThreadIdType(int) { return kSuccess; }
int cuptiActivityPushExternalCorrelationId(int, uint64_t id) {
  external.push_back(id);
  return kSuccess;
}
int cuptiActivityPopExternalCorrelationId(int, uint64_t* last) {
  if (external.empty()) return 1;
  *last = external.back();
  external.pop_back();
  return kSuccess;
}

}  // extern "C"
