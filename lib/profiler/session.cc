#include "lib/profiler/session.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/session_identity.h"
#include "lib/regions/region.h"

namespace firstframe {
namespace {

constexpr size_t kSpanBytes = 32 << 20;
constexpr absl::Duration kDrainEvery = absl::Milliseconds(200);
constexpr absl::Duration kDrainOftenEvery = absl::Milliseconds(20);
// Every so often CUPTI is asked for what it has and the clocks are
// read.
constexpr absl::Duration kFlushEvery = absl::Seconds(1);

// SpanRecord::kind: one of these, and above it the number of a region's entry.
constexpr uint32_t kSpan = 0;
constexpr uint32_t kRegion = 1;
constexpr uint32_t kMark = 2;
constexpr uint32_t kCall = 3;
constexpr int kKindBits = 2;
constexpr uint32_t kKindMask = (1 << kKindBits) - 1;
// Numbers start again after a billion entries.
constexpr uint32_t kMaxRegion = (1u << (32 - kKindBits)) - 2;

int64_t ThreadCpuNs() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t RealtimeNs() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// "HOST_PID.MILLISECONDS": unique by host, process and start, also where two
// containers have the same process id. TensorBoard's worker name is before the
// first point.
std::string MakeStem(const std::string& dir) {
  std::string host = HostName();
  for (char& c : host) {
    if (c == '.' || c == '/') c = '-';
  }
  return absl::StrCat(dir, "/", host, "_", ::getpid(), ".",
                      RealtimeNs() / 1'000'000);
}

// A call's SpanRecord has its correlation id for a name and, for an end, how
// long it took with the function above that.
constexpr int kDurationBits = 48;
constexpr uint64_t kDurationMask = (uint64_t{1} << kDurationBits) - 1;

}  // namespace

thread_local uint32_t Session::thread_region_ = 0;

absl::StatusOr<std::unique_ptr<Session>> Session::Start(
    SessionOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat(options.dir, ": ", error.message()));
  }
  std::unique_ptr<Session> session(new Session(std::move(options)));
  const SessionOptions& set = session->options_;
  session->stem_ = MakeStem(set.dir);
  TraceStreamOptions stream_options = {.pid = ::getpid(),
                                       .process_name = ProcessName(),
                                       .max_bytes = set.max_bytes,
                                       .keep_all = set.all};
  for (int attempt = 0;; ++attempt) {
    auto stream = TraceStream::Create(absl::StrCat(session->stem_, ".pftrace"),
                                      stream_options, &session->region_clock_);
    if (stream.ok()) {
      session->stream_ = *std::move(stream);
      break;
    }
    // Another container's process of the same id in the same millisecond.
    if (attempt == 8 || ::access(session->stem_.c_str(), F_OK) != 0) {
      if (attempt == 8) return stream.status();
    }
    session->stem_ = absl::StrCat(MakeStem(set.dir), "-", attempt + 1);
  }
  session->start_ns_ = TickClock::MonotonicNs();
  session->MeasureSpanCost();
  for (const std::string& warning : set.regions.warnings()) {
    session->Say(warning);
  }
  session->WriteMeta(false);
  session->worker_ = std::thread([raw = session.get()] { raw->RunWorker(); });
  return session;
}

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      clock_(TickClock::CounterIsReliable()),
      spans_(kSpanBytes),
      enable_name_(Intern("fastvideo.profiler.enable_collection").id),
      disable_name_(Intern("fastvideo.profiler.disable_collection").id) {}

Session::~Session() { Stop(); }

void Session::Say(std::string message) {
  absl::MutexLock lock(&mutex_);
  messages_.push_back(std::move(message));
}

std::vector<std::string> Session::messages() const {
  absl::MutexLock lock(&mutex_);
  return messages_;
}

// What one recorded span costs here, measured rather than claimed.
void Session::MeasureSpanCost() {
  constexpr int kSpans = 1000;
  const uint32_t id = Intern("firstframe.calibration").id;
  const int64_t begin = TickClock::MonotonicNs();
  for (int i = 0; i < kSpans; ++i) AddSpan(id, clock_.Now());
  span_cost_ns_ =
      static_cast<double>(TickClock::MonotonicNs() - begin) / kSpans;
  spans_.Drain([](int64_t, const SpanRecord&) {});
}

Session::Name Session::Intern(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto [found, added] = names_.try_emplace(std::string(name));
  if (!added) return found->second;
  // Spans of regions carry their one name; a program's own ranges keep theirs.
  const bool is_region = absl::StartsWith(name, kRegionSpanPrefix);
  const std::string region = options_.regions.NameOf(name);
  std::string shown = is_region                         ? RegionSpanName(region)
                      : region != ShortRegionName(name) ? region  // an alias
                                                        : std::string(name);
  const bool selected =
      !options_.regions.empty() && options_.regions.Selects(name);
  if (selected) totals_[region];
  found->second = {.id = static_cast<uint32_t>(span_names_.size()),
                   .selected = selected};
  span_names_.push_back(std::move(shown));
  is_region_.push_back(selected);
  return found->second;
}

Session::Open Session::Enter(Name name, bool may_move) {
  if (!name.selected || over_time_.load(std::memory_order_relaxed)) {
    // A span that starts outside of regions is not recorded.
    return {.start = collecting() ? clock_.Now() : 0};
  }
  Open open = {.region = last_region_.fetch_add(1, std::memory_order_relaxed) %
                             kMaxRegion +
                         1};
  const bool first = depth_.fetch_add(1, std::memory_order_acq_rel) == 0;
  open.start = clock_.Now();
  if (first) open.start = StartCollection(open.start);
  region_clock_.Open(clock_.ToNs(open.start), open.region,
                     SpanRecorder::ThreadId());
  open.may_move = may_move;
  if (may_move) return open;
  open.outer = std::exchange(thread_region_, open.region);
  if (CudaEventTimer* const timer = timer_.load(std::memory_order_acquire)) {
    timer->Begin(open.region, name.id);
  } else if (CuptiCollector* const cupti =
                 armed_.load(std::memory_order_acquire)) {
    open.pushed = cupti->PushExternal(open.region);
  }
  return open;
}

int64_t Session::StartCollection(int64_t tick) {
  if (driver_is_there_.load(std::memory_order_acquire)) {
    // depth_ counts this region already: the worker cannot switch off what is
    // on from here.
    absl::MutexLock lock(&arm_mutex_);
    if (CuptiCollector* const cupti = armed_.load();
        cupti == nullptr || !cupti->enabled()) {
      EnableGpu();
      tick = clock_.Now();
    }
  }
  spans_.Add({tick, tick, enable_name_, kMark});
  return tick;
}

void Session::Exit(Name name, const Open& open) {
  if (open.start == 0) return;
  const int64_t end = clock_.Now();
  if (open.region == 0) {
    if (collecting()) spans_.Add({open.start, end, name.id, kSpan});
    return;
  }
  if (!open.may_move) thread_region_ = open.outer;
  if (open.pushed) {
    armed_.load(std::memory_order_acquire)->PopExternal();
  } else if (CudaEventTimer* const timer =
                 timer_.load(std::memory_order_relaxed)) {
    timer->End(open.region);
  }
  spans_.Add({open.start, end, name.id, kRegion | open.region << kKindBits});
  region_clock_.Close(clock_.ToNs(end), open.region);
  if (depth_.fetch_sub(1, std::memory_order_acq_rel) == 1) EndCollection(end);
}

void Session::EndCollection(int64_t tick) {
  last_close_ns_.store(clock_.ToNs(tick), std::memory_order_relaxed);
  spans_.Add({tick, tick, disable_name_, kMark});
  if (options_.write_through) {
    DrainSpans();
    stream_->Flush(false).IgnoreError();
  }
}

void Session::OnCallExit(int64_t entered, uint32_t function,
                         uint32_t correlation) {
  const auto duration = static_cast<uint64_t>(clock_.Now() - entered);
  const uint32_t region =
      thread_region_ != 0 ? thread_region_ : region_clock_.last_open();
  spans_.Add({entered,
              static_cast<int64_t>(uint64_t{function} << kDurationBits |
                                   (duration & kDurationMask)),
              correlation, kCall | region << kKindBits});
}

void Session::AddCall(int64_t tid, const SpanRecord& record) {
  const auto packed = static_cast<uint64_t>(record.end);
  const auto number = static_cast<uint32_t>(packed >> kDurationBits);
  auto [function, is_new] = functions_.try_emplace(number);
  if (is_new) function->second = armed_.load()->FunctionOf(number);
  const int64_t end =
      record.start + static_cast<int64_t>(packed & kDurationMask);
  stream_->AddCall({.tid = tid,
                    .start_ns = clock_.ToNs(record.start),
                    .end_ns = clock_.ToNs(end),
                    .name = function->second.name,
                    .cbid = function->second.cbid,
                    .is_driver = function->second.is_driver,
                    .correlation = record.name,
                    .region = record.kind >> kKindBits});
}

void Session::DrainSpans() {
  absl::MutexLock drain_lock(&drain_mutex_);
  struct Copy {
    int64_t tid;
    SpanRecord record;
  };
  std::vector<Copy> copies;
  spans_.Drain([&](int64_t tid, const SpanRecord& record) {
    copies.push_back({tid, record});
  });
  if (copies.empty()) return;
  std::vector<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    names = span_names_;
    for (const Copy& copy : copies) {
      if ((copy.record.kind & kKindMask) != kRegion) continue;
      RegionTotals& totals =
          totals_[ShortRegionName(span_names_[copy.record.name])];
      ++totals.count;
      totals.total_ns +=
          clock_.ToNs(copy.record.end) - clock_.ToNs(copy.record.start);
    }
  }
  for (const Copy& copy : copies) {
    if ((copy.record.kind & kKindMask) == kCall) {
      AddCall(copy.tid, copy.record);
      continue;
    }
    if (copy.record.kind == kMark) {
      stream_->Instant(copy.tid, clock_.ToNs(copy.record.start),
                       names[copy.record.name]);
      continue;
    }
    stream_->Span(copy.tid, clock_.ToNs(copy.record.start),
                  clock_.ToNs(copy.record.end), names[copy.record.name],
                  copy.record.kind >> kKindBits);
  }
}

void Session::RunWorker() {
  const absl::Duration period =
      options_.write_through ? kDrainOftenEvery : kDrainEvery;
  absl::Time next_flush = absl::Now() + kFlushEvery;
  bool disk_failed = false;
  for (;;) {
    bool stop = false;
    {
      absl::MutexLock lock(&worker_mutex_);
      worker_mutex_.AwaitWithTimeout(absl::Condition(&wake_), period);
      stop = wake_;
    }
    if (stop) return;
    clock_.Calibrate();
    DrainSpans();
    DrainEvents();
    if (CuptiCollector* const cupti = armed_.load()) cupti->Drain();
    if (absl::Now() >= next_flush) {
      next_flush = absl::Now() + kFlushEvery;
      stream_->SnapshotClocks();
      if (CuptiCollector* const cupti = armed_.load(); cupti != nullptr) {
        cupti->Flush(false);
      }
      DisarmWhenIdle();
      // What a killed process leaves is a second old at most.
      WriteMeta(false);
    }
    const absl::Status status = stream_->Flush(false);
    if (!status.ok() && !disk_failed) {
      disk_failed = true;
      Say(std::string(status.message()));
    }
    const double elapsed =
        static_cast<double>(TickClock::MonotonicNs() - start_ns_) * 1e-9;
    if (options_.max_seconds > 0 && elapsed > options_.max_seconds &&
        !over_time_.exchange(true)) {
      Say(absl::StrCat("the time budget of ", options_.max_seconds,
                       " s is used up; nothing further is recorded"));
      if (CuptiCollector* const cupti = armed_.load(); cupti != nullptr) {
        cupti->Disable();
      }
    }
    worker_cpu_ns_ = ThreadCpuNs();
  }
}

void Session::Abandon() {
  stopped_ = true;
  stopping_ = true;
  thread_region_ = 0;
  SpanRecorder::ForgetThread();
}

void Session::Stop() {
  if (stopped_) return;
  stopped_ = true;
  stopping_ = true;
  if (worker_.joinable()) {
    {
      absl::MutexLock lock(&worker_mutex_);
      wake_ = true;
    }
    worker_.join();
  }
  if (stream_ == nullptr) return;
  if (cupti_ != nullptr) cupti_->Stop();
  DrainSpans();
  DrainEvents();
  stream_->SnapshotClocks();
  if (const absl::Status status = stream_->Flush(true); !status.ok()) {
    Say(std::string(status.message()));
  }
  if (const int64_t count = stream_->counts().by_time_count; count > 0) {
    Say(absl::StrCat("CUPTI delivered no API call: ", count,
                     " GPU events are kept by the time they ran, not by where "
                     "they were launched"));
  }
  std::vector<std::string> entered;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, totals] : totals_) {
      if (totals.count > 0) entered.push_back(name);
    }
  }
  for (std::string& message : options_.regions.NeverEntered(entered)) {
    Say(std::move(message));
  }
  WriteMeta(true);
}

}  // namespace firstframe
