#include "lib/profiler/cupti_collector.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/tick_clock.h"

namespace firstframe {
namespace {

// 26,000 API calls or 5,000 kernels: what a crash may lose of each thread.
constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kBufferAlign = 8;
constexpr size_t kKeptBuffers = 8;
// CUPTI's own default for a device buffer.
constexpr size_t kDeviceBufferBytes = 3200000;

// Not kSynchronization: its records say no more than the calls that wait do,
// and cost each launch of a PyTorch loop a microsecond (CUPTI 13.0.1, H200).
constexpr int32_t kKinds[] = {cupti::kConcurrentKernel, cupti::kMemcpy,
                              cupti::kMemset, cupti::kOverhead};
// All API calls, filtered as they are decoded: cuptiActivityEnableRuntimeApi,
// which selects them one by one, records nothing when it is called after the
// program's runtime is up (CUPTI 13.0.1).
constexpr int32_t kCallKinds[] = {cupti::kRuntime, cupti::kDriver,
                                  cupti::kExternalCorrelation};

}  // namespace

CuptiCollector* CuptiCollector::instance_ = nullptr;

absl::StatusOr<std::unique_ptr<CuptiCollector>> CuptiCollector::Create(
    const CuptiApi& api, const CuptiOptions& options, CuptiSink* sink) {
  if (instance_ != nullptr) {
    return absl::AlreadyExistsError(
        "CUPTI is collected in this process already");
  }
  std::unique_ptr<CuptiCollector> collector(
      new CuptiCollector(api, options, sink));
  if (options.subscribe) FF_RETURN_IF_ERROR(collector->Subscribe());
  instance_ = collector.get();
  if (options.calls != nullptr && collector->subscriber_ != nullptr &&
      api.enable_callback != nullptr) {
    collector->FindFunctions();
  }
  if (api.set_thread_id_type != nullptr) {
    api.set_thread_id_type(cupti::kThreadIdSystem);
  }
  size_t size = sizeof(size_t);
  size_t limit =
      std::max<size_t>(options.max_device_bytes / kDeviceBufferBytes, 3);
  api.set_attribute(cupti::kAttributeDeviceBufferPoolLimit, &size, &limit);
  const cupti::Result result = api.register_callbacks(&Requested, &Completed);
  if (result != cupti::kSuccess) {
    collector->Stop();
    return absl::UnavailableError(
        absl::StrCat("cuptiActivityRegisterCallbacks: ", api.Message(result)));
  }
  return collector;
}

absl::Status CuptiCollector::Subscribe() {
  char holder[cupti::kOldSubscriberNameBytes] = {};
  cupti::Result result;
  if (api_.subscribe_v2 != nullptr) {
    cupti::SubscriberParams params = {.struct_size = sizeof(params),
                                      .subscriber_name = "Firstframe",
                                      .old_subscriber_name = holder,
                                      .old_subscriber_size = sizeof(holder)};
    result = api_.subscribe_v2(&subscriber_, &OnCallback, this, &params);
  } else {
    result = api_.subscribe(&subscriber_, &OnCallback, this);
  }
  if (result == cupti::kSuccess) return absl::OkStatus();
  subscriber_ = nullptr;
  holder[sizeof(holder) - 1] = '\0';
  if (result == cupti::kMultipleSubscribers) {
    return absl::UnavailableError(absl::StrCat(
        "CUPTI is held by ",
        holder[0] != '\0' ? absl::StrCat("'", holder, "'")
                          : "another tool (Nsight, a debugger, a profiler)"));
  }
  return absl::UnavailableError(
      absl::StrCat("cuptiSubscribe: ", api_.Message(result)));
}

CuptiCollector::~CuptiCollector() {
  Stop();
  absl::MutexLock lock(&pool_mutex_);
  for (uint8_t* buffer : free_) std::free(buffer);
  if (instance_ == this) instance_ = nullptr;
}

// The reading whose two times of ours lie closest.
void CuptiCollector::Calibrate() {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 8; ++i) {
    uint64_t theirs = 0;
    const int64_t before = TickClock::MonotonicNs();
    if (api_.get_timestamp(&theirs) != cupti::kSuccess) return;
    const int64_t after = TickClock::MonotonicNs();
    if (after - before >= best) continue;
    best = after - before;
    offset_ns_ = before + (after - before) / 2 - static_cast<int64_t>(theirs);
  }
}

absl::Status CuptiCollector::Enable() {
  if (stopped_) return absl::UnavailableError("collection has ended");
  if (enabled_) return absl::OkStatus();
  for (const int32_t kind : kKinds) {
    const cupti::Result result = api_.enable(kind);
    // Without kernels there is nothing to show; the others may be missing.
    if (result != cupti::kSuccess && kind == cupti::kConcurrentKernel) {
      return absl::UnavailableError(
          absl::StrCat("cuptiActivityEnable: ", api_.Message(result)));
    }
  }
  if (takes_callbacks()) {
    SwitchCallbacks(true);
  } else {
    for (const int32_t kind : kCallKinds) {
      if (kind != cupti::kExternalCorrelation ||
          options_.external_correlation) {
        api_.enable(kind);
      }
    }
  }
  Calibrate();
  enabled_ = true;
  return absl::OkStatus();
}

void CuptiCollector::Disable() {
  if (!enabled_.exchange(false)) return;
  for (const int32_t kind : kKinds) {
    api_.disable(kind);
  }
  if (takes_callbacks()) {
    SwitchCallbacks(false);
  } else {
    for (const int32_t kind : kCallKinds) api_.disable(kind);
  }
}

bool CuptiCollector::PushExternal(uint64_t id) {
  return options_.external_correlation && !takes_callbacks() &&
         api_.push_external != nullptr && api_.pop_external != nullptr &&
         api_.push_external(cupti::kExternalOurs, id) == cupti::kSuccess;
}

void CuptiCollector::PopExternal() {
  uint64_t last = 0;
  api_.pop_external(cupti::kExternalOurs, &last);
}

void CuptiCollector::Flush(bool forced) {
  if (stopped_) return;
  api_.flush_all(forced ? cupti::kFlushForced : 0);
  // CUPTI's clock is the wall clock, which may be set while a program runs.
  Calibrate();
}

void CuptiCollector::Stop() {
  if (stopped_) return;
  // What is in flight is delivered first: disabling may not wait for it.
  api_.flush_all(0);
  Disable();
  api_.flush_all(cupti::kFlushForced);
  Drain();
  stopped_ = true;
  if (subscriber_ != nullptr) api_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
  // CUPTI may still hold buffers it asked for: the instance stays reachable.
}

uint8_t* CuptiCollector::TakeBuffer() {
  absl::MutexLock lock(&pool_mutex_);
  ++lent_;
  if (!free_.empty()) {
    uint8_t* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  return static_cast<uint8_t*>(std::aligned_alloc(kBufferAlign, kBufferBytes));
}

void CuptiCollector::ReturnBuffer(uint8_t* buffer) {
  absl::MutexLock lock(&pool_mutex_);
  --lent_;
  // Some are kept, whose pages are there already; a burst's others go back.
  if (free_.size() < kKeptBuffers) {
    free_.push_back(buffer);
  } else {
    std::free(buffer);
  }
}

void CuptiCollector::Requested(uint8_t** buffer, size_t* size,
                               size_t* max_records) {
  *max_records = 0;
  *size = kBufferBytes;
  // Never null: CUPTI before 12.9 writes through it.
  *buffer = instance_->TakeBuffer();
  ++instance_->buffers_;
}

void CuptiCollector::Completed(void* context, uint32_t stream, uint8_t* buffer,
                               size_t, size_t valid_size) {
  CuptiCollector& self = *instance_;
  // Outside our locks: it takes CUPTI's, which may be held by a thread that is
  // waiting for ours.
  size_t lost = 0;
  if (self.api_.get_dropped(context, stream, &lost) == cupti::kSuccess) {
    self.dropped_ += static_cast<int64_t>(lost);
  }
  if (valid_size == 0 || self.stopped_) {
    self.ReturnBuffer(buffer);
    return;
  }
  {
    absl::MutexLock lock(&self.pool_mutex_);
    if (self.lent_ * kBufferBytes <= self.options_.max_host_bytes) {
      self.filled_.push_back({buffer, valid_size});
      return;
    }
  }
  for (void* record = nullptr;
       self.api_.get_next_record(buffer, valid_size, &record) ==
       cupti::kSuccess;) {
    ++self.dropped_;
  }
  self.ReturnBuffer(buffer);
}

void CuptiCollector::Drain() {
  std::vector<Filled> filled;
  {
    absl::MutexLock lock(&pool_mutex_);
    filled.swap(filled_);
  }
  for (const Filled& from : filled) {
    Decode(from.buffer, from.size);
    ReturnBuffer(from.buffer);
  }
}

void CuptiCollector::Decode(uint8_t* buffer, size_t size) {
  absl::MutexLock lock(&sink_mutex_);
  void* record = nullptr;
  while (api_.get_next_record(buffer, size, &record) == cupti::kSuccess) {
    sink_mutex_.AssertHeld();
    DecodeOne(record);
  }
}

absl::string_view CuptiCollector::ApiName(int domain, uint32_t cbid) {
  if (cbid >= kMaxCallbackId) return "";
  auto& names = names_[domain == cupti::kDomainDriver];
  if (names.empty()) names.resize(kMaxCallbackId);
  if (names[cbid].empty()) {
    const char* name = nullptr;
    if (api_.get_callback_name(domain, cbid, &name) == cupti::kSuccess &&
        name != nullptr) {
      names[cbid] = ApiCallName(name);
    }
  }
  return names[cbid];
}

void CuptiCollector::DecodeOne(void* record) {
  int32_t kind = 0;
  std::memcpy(&kind, record, sizeof(kind));
  switch (kind) {
    case cupti::kConcurrentKernel:
      sink_->OnKernel(Shifted<cupti::KernelRecord>(record));
      break;
    case cupti::kMemcpy:
      sink_->OnMemcpy(Shifted<cupti::MemcpyRecord>(record));
      break;
    case cupti::kMemset:
      sink_->OnMemset(Shifted<cupti::MemsetRecord>(record));
      break;
    case cupti::kRuntime:
    case cupti::kDriver: {
      const auto api = Shifted<cupti::ApiRecord>(record);
      const bool is_driver = kind == cupti::kDriver;
      const absl::string_view name = ApiName(
          is_driver ? cupti::kDomainDriver : cupti::kDomainRuntime, api.cbid);
      if (name.empty()) break;
      if (options_.all_api_calls || IsInterestingApiCall(name)) {
        sink_->OnApi(api, name, is_driver);
      }
      break;
    }
    case cupti::kExternalCorrelation:
      sink_->OnExternal(*static_cast<const cupti::ExternalRecord*>(record));
      break;
    case cupti::kOverhead:
      sink_->OnOverhead(Shifted<cupti::OverheadRecord>(record));
      break;
  }
}

}  // namespace firstframe
