#include "lib/profiler/cuda_event_timer.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/profiler/tick_clock.h"

namespace firstframe {
namespace {

constexpr int kNotReady = 600;      // CUDA_ERROR_NOT_READY
constexpr int kRelaxedCapture = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
// An elapsed time is a float of milliseconds: exact to 1 us up to here.
constexpr int64_t kRebaseNs = 10'000'000'000;

int64_t ToNs(float milliseconds) {
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

// Lets this thread's calls pass while another thread captures a graph.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaEventApi& api) : api_(api) {
    ok_ = api_.exchange_capture_mode(&mode_) == 0;
  }
  ~RelaxedCapture() {
    if (ok_) api_.exchange_capture_mode(&mode_);
  }

 private:
  const CudaEventApi& api_;
  int mode_ = kRelaxedCapture;
  bool ok_ = false;
};

}  // namespace

CudaEventApi CudaEventApi::FindLoaded() {
  CudaEventApi api = {};
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return api;
  const auto set = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
        ::dlsym(driver, name));
  };
  set("cuCtxGetCurrent", &api.get_context);
  set("cuCtxPushCurrent_v2", &api.push_context);
  set("cuCtxPopCurrent_v2", &api.pop_context);
  set("cuCtxGetDevice", &api.get_device);
  set("cuEventCreate", &api.create);
  set("cuEventRecord", &api.record);
  set("cuEventQuery", &api.query);
  set("cuEventElapsedTime", &api.elapsed);
  set("cuStreamIsCapturing", &api.is_capturing);
  set("cuThreadExchangeStreamCaptureMode", &api.exchange_capture_mode);
  return api;
}

bool CudaEventApi::complete() const {
  return get_context != nullptr && push_context != nullptr &&
         pop_context != nullptr && get_device != nullptr && create != nullptr &&
         record != nullptr && query != nullptr && elapsed != nullptr &&
         is_capturing != nullptr && exchange_capture_mode != nullptr;
}

bool CudaEventTimer::Record(CudaEventApi::Context context, Mark* mark) {
  const RelaxedCapture relaxed(api_);
  int capturing = 0;
  // Fails, too, while a stream that waits for the default one captures.
  if (api_.is_capturing(nullptr, &capturing) != 0 || capturing != 0) {
    return false;
  }
  std::vector<CudaEventApi::Event>& free = free_[context];
  if (free.empty()) {
    CudaEventApi::Event event = nullptr;
    if (api_.create(&event, 0) != 0) return false;
    free.push_back(event);
  }
  if (api_.record(free.back(), nullptr) != 0) return false;
  mark->event = free.back();
  mark->host_ns = TickClock::MonotonicNs();
  free.pop_back();
  return true;
}

void CudaEventTimer::Begin(uint32_t region, uint32_t name) {
  CudaEventApi::Context context = nullptr;
  if (api_.get_context(&context) != 0 || context == nullptr) return;
  Pair pair = {.region = region, .name = name, .context = context};
  api_.get_device(&pair.device);
  absl::MutexLock lock(&mutex_);
  if (open_.size() + ended_.size() >= max_open_ ||
      !Record(context, &pair.begin)) {
    ++dropped_;
    return;
  }
  Base& base = bases_[context];
  if (base.event == nullptr) {
    Mark mark;
    if (Record(context, &mark)) base = {mark.event, mark.host_ns};
  }
  open_.emplace(region, pair);
}

void CudaEventTimer::End(uint32_t region) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(region);
  if (found == open_.end()) return;
  Pair pair = found->second;
  open_.erase(found);
  // Left on another thread: its context may be another.
  CudaEventApi::Context context = nullptr;
  if (api_.get_context(&context) != 0 || context != pair.context ||
      !Record(context, &pair.end)) {
    free_[pair.context].push_back(pair.begin.event);
    ++dropped_;
    return;
  }
  ended_.push_back(pair);
}

// Places a finished pair in time. The base's own time on the host's clock is
// the latest that no event contradicts: none runs before it is recorded.
bool CudaEventTimer::Measure(Pair* pair, Time* time) {
  Base& base = bases_[pair->context];
  float duration = 0, to_begin = 0;
  if (api_.elapsed(&duration, pair->begin.event, pair->end.event) != 0) {
    return false;
  }
  *time = {.region = pair->region,
           .name = pair->name,
           .device = pair->device,
           .start_ns = pair->begin.host_ns,
           .duration_ns = ToNs(duration)};
  if (base.event == nullptr ||
      api_.elapsed(&to_begin, base.event, pair->begin.event) != 0) {
    return true;
  }
  const int64_t begin_ns = ToNs(to_begin);
  base.host_ns = std::max({base.host_ns, pair->begin.host_ns - begin_ns,
                           pair->end.host_ns - begin_ns - time->duration_ns});
  time->start_ns = base.host_ns + begin_ns;
  if (begin_ns > kRebaseNs) {
    std::swap(base.event, pair->begin.event);
    base.host_ns += begin_ns;
  }
  return true;
}

void CudaEventTimer::Collect(absl::FunctionRef<void(const Time&)> take) {
  const RelaxedCapture relaxed(api_);
  for (;;) {
    Time time = {};
    bool is_measured = false;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_.empty()) return;
      Pair pair = ended_.front();
      if (api_.push_context(pair.context) != 0) {
        // A context that is gone, and its events with it.
        ended_.pop_front();
        ++dropped_;
        continue;
      }
      const int state = api_.query(pair.end.event);
      if (state == 0) is_measured = Measure(&pair, &time);
      CudaEventApi::Context popped = nullptr;
      api_.pop_context(&popped);
      if (state == kNotReady) return;
      ended_.pop_front();
      free_[pair.context].push_back(pair.begin.event);
      free_[pair.context].push_back(pair.end.event);
      if (!is_measured) ++dropped_;
    }
    if (is_measured) take(time);
  }
}

}  // namespace firstframe
