#include "lib/profiler/trace_stream.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr size_t kWriteBytes = 256 << 10;
// With everything kept, work waits this long for its launch, which says where
// it was made.
constexpr int64_t kKeepAllWaitNs = 3'000'000'000;
// Kineto's name for what joins a launch and its work to a span.
constexpr absl::string_view kExternalId = "External id";
// The place of region times among a device's streams.
constexpr uint32_t kEventStream = UINT32_MAX;
// Kernels of one stream rarely overlap more (programmatic dependent launch).
constexpr size_t kMaxLanes = 8;

int64_t ReadClock(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceStream>> TraceStream::Create(
    const std::string& path, const TraceStreamOptions& options,
    const RegionClock* regions) {
  const int fd = ::open(
      path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot create: ", std::strerror(errno)));
  }
  std::unique_ptr<TraceStream> stream(
      new TraceStream(path, fd, options, regions));
  stream->SnapshotClocks();
  FF_RETURN_IF_ERROR(stream->Flush(false));
  return stream;
}

TraceStream::TraceStream(std::string path, int fd,
                         const TraceStreamOptions& options,
                         const RegionClock* regions)
    : path_(std::move(path)),
      fd_(fd),
      options_(options),
      regions_(regions),
      writer_(&bytes_),
      join_(options.keep_all) {
  absl::MutexLock lock(&mutex_);
  process_ = writer_.AddProcess(options_.pid, options_.process_name);
}

TraceStream::~TraceStream() { ::close(fd_); }

bool TraceStream::OverBudget() {
  if (counts_.size_bytes + static_cast<int64_t>(bytes_.size()) <
      options_.max_bytes) {
    return false;
  }
  ++counts_.over_budget_count;
  return true;
}

uint64_t TraceStream::ThreadTrack(int64_t tid) {
  uint64_t& track = threads_[tid];
  if (track == 0) {
    char name[32] = {};
    const std::string path = absl::StrCat("/proc/self/task/", tid, "/comm");
    if (const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
      const ssize_t n = ::read(fd, name, sizeof(name) - 1);
      if (n > 0 && name[n - 1] == '\n') name[n - 1] = '\0';
      ::close(fd);
    }
    track = writer_.AddThread(process_, options_.pid, tid, name);
  }
  return track;
}

uint64_t TraceStream::ApiTrack(int64_t tid) {
  uint64_t& track = api_tracks_[tid];
  // On the thread's own track a call could straddle a span that a later drain
  // delivers.
  if (track == 0) track = writer_.AddTrack("CUDA API", ThreadTrack(tid));
  return track;
}

void TraceStream::Span(int64_t tid, int64_t start_ns, int64_t end_ns,
                       absl::string_view name, uint32_t region) {
  absl::MutexLock lock(&mutex_);
  if (OverBudget()) return;
  const uint64_t track = ThreadTrack(tid);
  const TraceAnnotation external = {kExternalId, int64_t{region}};
  writer_.BeginSlice(
      track, start_ns, name,
      {.category = "user_annotation",
       .annotations = absl::MakeConstSpan(&external, region == 0 ? 0 : 1)});
  writer_.EndSlice(track, end_ns);
  ++counts_.span_count;
}

void TraceStream::Instant(int64_t tid, int64_t time_ns,
                          absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  if (OverBudget()) return;
  writer_.Instant(ThreadTrack(tid), time_ns, name,
                  {.category = "user_annotation"});
}

void TraceStream::SnapshotClocks() {
  const TraceWriter::ClockReading readings[] = {
      {TraceClock::kMonotonic, ReadClock(CLOCK_MONOTONIC)},
      {TraceClock::kRealtime, ReadClock(CLOCK_REALTIME)},
      {TraceClock::kBoottime, ReadClock(CLOCK_BOOTTIME)}};
  absl::MutexLock lock(&mutex_);
  writer_.ClockSnapshot(readings);
}

void TraceStream::OnApi(const cupti::ApiRecord& record, absl::string_view name,
                        bool is_driver) {
  absl::MutexLock lock(&mutex_);
  const auto start = static_cast<int64_t>(record.start);
  // What the thread pushed is exact; times of two clocks may differ by more
  // than a launch is away from its region's start.
  uint32_t region = external_.correlation_id == record.correlation_id
                        ? static_cast<uint32_t>(external_.external_id)
                        : 0;
  if (region == 0) region = regions_->RegionAt(start, record.thread_id);
  PutCall({.tid = record.thread_id,
           .start_ns = start,
           .end_ns = static_cast<int64_t>(record.end),
           .name = name,
           .cbid = record.cbid,
           .is_driver = is_driver,
           .correlation = record.correlation_id,
           .region = region});
}

void TraceStream::AddCall(const Call& call) {
  absl::MutexLock lock(&mutex_);
  PutCall(call);
}

void TraceStream::PutCall(const Call& call) {
  ++counts_.api_seen_count;
  const bool keep = options_.keep_all || call.region != 0;
  join_.AddLaunch(call.correlation, keep, call.region,
                  [this](const GpuWork& work, bool kept) {
                    mutex_.AssertHeld();
                    Take(work, kept);
                  });
  if (!keep) {
    ++counts_.outside_count;
    return;
  }
  if (absl::StrContains(call.name, "Synchronize")) ++counts_.sync_count;
  if (OverBudget()) return;
  const TraceAnnotation annotations[] = {
      {"cbid", int64_t{call.cbid}},
      {"correlation", int64_t{call.correlation}},
      {kExternalId, int64_t{call.region}}};
  const uint64_t track = ApiTrack(call.tid);
  writer_.BeginSlice(
      track, call.start_ns, call.name,
      {.category = call.is_driver ? "cuda_driver" : "cuda_runtime",
       .annotations =
           absl::MakeConstSpan(annotations, call.region == 0 ? 2 : 3)});
  writer_.EndSlice(track, call.end_ns);
  ++counts_.api_count;
  if (bytes_.size() >= kWriteBytes) static_cast<void>(WriteOut());
}

void TraceStream::OnExternal(const cupti::ExternalRecord& record) {
  absl::MutexLock lock(&mutex_);
  if (record.external_kind == cupti::kExternalOurs) external_ = record;
}

void TraceStream::OnKernel(const cupti::KernelRecord& record) {
  absl::MutexLock lock(&mutex_);
  Place(decoder_.Kernel(record));
}

void TraceStream::OnMemcpy(const cupti::MemcpyRecord& record) {
  absl::MutexLock lock(&mutex_);
  Place(decoder_.Memcpy(record));
}

void TraceStream::OnMemset(const cupti::MemsetRecord& record) {
  absl::MutexLock lock(&mutex_);
  Place(decoder_.Memset(record));
}

void TraceStream::OnOverhead(const cupti::OverheadRecord& record) {
  absl::MutexLock lock(&mutex_);
  const bool is_its_own =
      record.overhead_kind == cupti::kOverheadInstrumentation ||
      record.overhead_kind == cupti::kOverheadResource ||
      record.overhead_kind == cupti::kOverheadBufferRequest;
  if (is_its_own && record.end > record.start) {
    counts_.cupti_overhead_ns +=
        static_cast<int64_t>(record.end - record.start);
  }
}

void TraceStream::Place(const GpuWork& work) {
  // An end of 0 is CUPTI's for work it gave up on.
  if (work.end_ns <= 0 || work.start_ns <= 0) {
    ++counts_.outside_count;
    return;
  }
  join_.AddWork(work, ReadClock(CLOCK_MONOTONIC_COARSE),
                [this](const GpuWork& settled, bool keep) {
                  mutex_.AssertHeld();
                  Take(settled, keep);
                });
}

void TraceStream::Take(const GpuWork& work, bool keep) {
  if (keep) {
    Emit(work);
  } else {
    ++counts_.outside_count;
  }
}

uint64_t TraceStream::DeviceTrack(uint32_t device, uint32_t stream,
                                  absl::string_view name, int64_t start_ns,
                                  int64_t end_ns) {
  uint64_t& parent = devices_[device];
  if (parent == 0) {
    parent = writer_.AddTrack(absl::StrCat("GPU ", device), process_);
  }
  std::vector<Stream::Lane>& lanes =
      streams_[uint64_t{device} << 32 | stream].lanes;
  for (Stream::Lane& lane : lanes) {
    if (start_ns < lane.end_ns) continue;
    lane.end_ns = end_ns;
    return lane.track;
  }
  if (lanes.size() < kMaxLanes) {
    lanes.push_back({writer_.AddTrack(name, parent), end_ns});
  }
  return lanes.back().track;
}

void TraceStream::DeviceSpan(uint32_t device, int64_t start_ns, int64_t end_ns,
                             absl::string_view name, uint32_t region) {
  absl::MutexLock lock(&mutex_);
  if (OverBudget()) return;
  const uint64_t track = DeviceTrack(
      device, kEventStream, "regions by CUDA events", start_ns, end_ns);
  const TraceAnnotation annotations[] = {
      {"device", int64_t{device}},
      {"stream", int64_t{0}},
      {kExternalId, int64_t{region}},
      {"measured by", absl::string_view("CUDA events on the default stream")}};
  writer_.BeginSlice(
      track, start_ns, name,
      {.category = "gpu_user_annotation", .annotations = annotations});
  writer_.EndSlice(track, end_ns);
}

void TraceStream::Emit(const GpuWork& work) {
  if (OverBudget()) return;
  TraceAnnotation annotations[16];
  size_t n = 0;
  annotations[n++] = {"device", int64_t{work.device}};
  annotations[n++] = {"context", int64_t{work.context}};
  annotations[n++] = {"stream", int64_t{work.stream}};
  annotations[n++] = {"correlation", int64_t{work.correlation}};
  if (work.region != 0) annotations[n++] = {kExternalId, int64_t{work.region}};
  if (work.bytes < 0) {
    annotations[n++] = {"registers per thread", int64_t{work.registers}};
    annotations[n++] = {"shared memory", int64_t{work.shared_memory}};
    annotations[n++] = {"grid x", int64_t{work.grid[0]}};
    annotations[n++] = {"grid y", int64_t{work.grid[1]}};
    annotations[n++] = {"grid z", int64_t{work.grid[2]}};
    annotations[n++] = {"block x", int64_t{work.block[0]}};
    annotations[n++] = {"block y", int64_t{work.block[1]}};
    annotations[n++] = {"block z", int64_t{work.block[2]}};
    ++counts_.kernel_count;
  } else {
    annotations[n++] = {"bytes", work.bytes};
    ++counts_.copy_count;
  }
  if (work.graph != 0) {
    annotations[n++] = {"graph node id", static_cast<int64_t>(work.graph_node)};
    annotations[n++] = {"graph id", int64_t{work.graph}};
  }
  const uint64_t track = DeviceTrack(work.device, work.stream,
                                     absl::StrCat("stream ", work.stream),
                                     work.start_ns, work.end_ns);
  writer_.BeginSlice(track, work.start_ns, *work.name,
                     {.category = work.category,
                      .annotations = absl::MakeConstSpan(annotations, n)});
  writer_.EndSlice(track, work.end_ns);
  if (bytes_.size() >= kWriteBytes) static_cast<void>(WriteOut());
}

absl::Status TraceStream::Flush(bool last) {
  absl::MutexLock lock(&mutex_);
  const auto take = [&](const GpuWork& work, bool keep) {
    mutex_.AssertHeld();
    const uint32_t region = keep || counts_.api_seen_count > 0
                                ? 0
                                : regions_->RegionAt(work.start_ns, /*tid=*/0);
    if (region == 0) return Take(work, keep);
    GpuWork ours = work;
    ours.region = region;
    ++counts_.by_time_count;
    Emit(ours);
  };
  if (last) {
    join_.GiveUp(INT64_MAX, take);
  } else if (options_.keep_all) {
    join_.GiveUp(ReadClock(CLOCK_MONOTONIC_COARSE) - kKeepAllWaitNs, take);
  }
  return WriteOut();
}

absl::Status TraceStream::WriteOut() {
  size_t done = 0;
  while (done < bytes_.size()) {
    const ssize_t n = ::write(fd_, bytes_.data() + done, bytes_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int code = errno;
      // A full disk must not fill the memory too.
      bytes_.clear();
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, ": ", std::strerror(code)));
    }
    done += n;
  }
  counts_.size_bytes += static_cast<int64_t>(done);
  bytes_.clear();
  return absl::OkStatus();
}

TraceStreamCounts TraceStream::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace firstframe
