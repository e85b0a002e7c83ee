// What a session records of the device: by CUPTI, or else by CUDA events.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/session.h"
#include "lib/regions/region.h"

namespace firstframe {
namespace {

constexpr int64_t kDisarmAfterNs = 1'000'000'000;

}  // namespace

// Collection costs a little on every launch, also outside of regions. After a
// while without a region it is switched off; what was launched is delivered.
void Session::DisarmWhenIdle() {
  CuptiCollector* const cupti = armed_.load();
  if (cupti == nullptr || options_.all || !cupti->enabled()) return;
  if (collecting() ||
      TickClock::MonotonicNs() - last_close_ns_ < kDisarmAfterNs) {
    return;
  }
  cupti->Flush(false);
  absl::MutexLock lock(&arm_mutex_);
  if (!collecting()) cupti->Disable();
}

void Session::ArmGpu() {
  if (!options_.collect_gpu) return;
  driver_is_there_ = true;
  // CUPTI costs something from the moment it is attached: not before a region
  // opens.
  if (options_.all || collecting()) {
    absl::MutexLock lock(&arm_mutex_);
    EnableGpu();
  }
}

// Attaches to CUPTI at the first call; switches it on.
void Session::EnableGpu() {
  if (stopping_ || gpu_failed_) return;
  const int64_t before = TickClock::MonotonicNs();
  absl::Status status = cupti_ == nullptr ? AttachGpu() : absl::OkStatus();
  if (status.ok()) {
    // Before the first call may come.
    armed_.store(cupti_.get(), std::memory_order_release);
    status = cupti_->Enable();
  }
  enable_ns_ += TickClock::MonotonicNs() - before;
  if (status.ok()) return;
  // armed_ stays: calls that came while it was on are drained later.
  gpu_failed_ = true;
  StepDown(status);
}

// Without CUPTI, regions are timed by events; kernels are not seen.
void Session::StepDown(const absl::Status& why) {
  const CudaEventApi driver = CudaEventApi::FindLoaded();
  if (driver.complete()) {
    event_timer_ = std::make_unique<CudaEventTimer>(driver);
    timer_.store(event_timer_.get(), std::memory_order_release);
  }
  Say(absl::StrCat(why.message(),
                   driver.complete()
                       ? "; recording spans, and GPU time of regions by CUDA "
                         "events on the default stream, without kernels"
                       : "; recording spans alone, without kernels"));
  absl::MutexLock lock(&mutex_);
  cupti_state_ = std::string(why.message());
}

absl::Status Session::AttachGpu() {
  FF_ASSIGN_OR_RETURN(const CuptiApi api,
                      CuptiApi::Load(options_.cupti_search));
  if (options_.on_attach != nullptr) options_.on_attach();
  CuptiOptions cupti_options;
  cupti_options.max_device_bytes =
      static_cast<size_t>(options_.max_device_bytes);
  cupti_options.subscribe = options_.hold_cupti;
  if (options_.call_callbacks) cupti_options.calls = this;
  FF_ASSIGN_OR_RETURN(
      cupti_, CuptiCollector::Create(api, cupti_options, stream_.get()));
  absl::MutexLock lock(&mutex_);
  cupti_state_ = absl::StrCat(api.path, ", version ", api.version);
  return absl::OkStatus();
}

void Session::DrainEvents() {
  CudaEventTimer* const timer = timer_.load(std::memory_order_acquire);
  if (timer == nullptr) return;
  timer->Collect([this](const CudaEventTimer::Time& time) {
    std::string name;
    {
      absl::MutexLock lock(&mutex_);
      name = span_names_[time.name];
      RegionTotals& totals = totals_[ShortRegionName(name)];
      totals.event_ns += time.duration_ns;
      ++totals.event_count;
    }
    stream_->DeviceSpan(static_cast<uint32_t>(time.device), time.start_ns,
                        time.start_ns + time.duration_ns, name, time.region);
  });
}

}  // namespace firstframe
