#include "lib/profiler/trace_stream.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr size_t kWriteBytes = 256 << 10;
// Work that waits for its launch: 40 MiB. What is older was launched outside.
constexpr size_t kMaxWaiting = 256 << 10;
// Kernels of one stream rarely overlap more (programmatic dependent launch).
constexpr size_t kMaxLanes = 8;

int64_t ReadClock(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const char* CopyKindName(uint8_t kind) {
  constexpr const char* kNames[] = {"unknown", "HtoD", "DtoH", "HtoA",
                                    "AtoH",    "AtoA", "AtoD", "DtoA",
                                    "DtoD",    "HtoH", "PtoP"};
  return kind < 11 ? kNames[kind] : "unknown";
}

const char* MemoryKindName(uint32_t kind) {
  constexpr const char* kNames[] = {"Unknown",       "Pageable",      "Pinned",
                                    "Device",        "Array",         "Managed",
                                    "Device Static", "Managed Static"};
  return kind < 8 ? kNames[kind] : "Unknown";
}

std::string Demangle(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string demangled = text;
  std::free(text);
  return demangled;
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
      writer_(&bytes_) {
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
                       absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  if (OverBudget()) return;
  const uint64_t track = ThreadTrack(tid);
  writer_.BeginSlice(track, start_ns, name, {.category = "user_annotation"});
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
  ++counts_.api_seen_count;
  const auto start = static_cast<int64_t>(record.start);
  if (!options_.keep_all && !regions_->Contains(start)) {
    ++counts_.outside_count;
    SettleWaiting(record.correlation_id, false);
    return;
  }
  kept_.insert(record.correlation_id);
  SettleWaiting(record.correlation_id, true);
  if (OverBudget()) return;
  const TraceAnnotation annotations[] = {
      {"cbid", int64_t{record.cbid}},
      {"correlation", int64_t{record.correlation_id}}};
  const uint64_t track = ApiTrack(record.thread_id);
  writer_.BeginSlice(track, start, name,
                     {.category = is_driver ? "cuda_driver" : "cuda_runtime",
                      .annotations = annotations});
  writer_.EndSlice(track, static_cast<int64_t>(record.end));
  ++counts_.api_count;
}

const std::string* TraceStream::KernelName(const char* mangled) {
  auto& name = names_[mangled == nullptr ? "unknown kernel" : mangled];
  if (name == nullptr) {
    name = std::make_unique<std::string>(
        mangled == nullptr ? "unknown kernel" : Demangle(mangled));
  }
  return name.get();
}

void TraceStream::OnKernel(const cupti::KernelRecord& record) {
  absl::MutexLock lock(&mutex_);
  Work work = {.start_ns = static_cast<int64_t>(record.start),
               .end_ns = static_cast<int64_t>(record.end),
               .category = "kernel",
               .name = KernelName(record.name),
               .device = record.device_id,
               .context = record.context_id,
               .stream = record.stream_id,
               .correlation = record.correlation_id,
               .bytes = -1,
               .grid = {record.grid[0], record.grid[1], record.grid[2]},
               .block = {record.block[0], record.block[1], record.block[2]},
               .registers = record.registers_per_thread,
               .shared_memory =
                   record.static_shared_memory + record.dynamic_shared_memory,
               .graph_node = record.graph_node_id,
               .graph = record.graph_id};
  Place(work);
}

void TraceStream::OnMemcpy(const cupti::MemcpyRecord& record) {
  absl::MutexLock lock(&mutex_);
  auto& name =
      names_[absl::StrCat("Memcpy ", CopyKindName(record.copy_kind), " ",
                          int{record.src_kind}, " ", int{record.dst_kind})];
  if (name == nullptr) {
    name = std::make_unique<std::string>(
        absl::StrCat("Memcpy ", CopyKindName(record.copy_kind), " (",
                     MemoryKindName(record.src_kind), " -> ",
                     MemoryKindName(record.dst_kind), ")"));
  }
  Work work = {.start_ns = static_cast<int64_t>(record.start),
               .end_ns = static_cast<int64_t>(record.end),
               .category = "gpu_memcpy",
               .name = name.get(),
               .device = record.device_id,
               .context = record.context_id,
               .stream = record.stream_id,
               .correlation = record.correlation_id,
               .bytes = static_cast<int64_t>(record.bytes),
               .grid = {},
               .block = {},
               .registers = 0,
               .shared_memory = 0,
               .graph_node = record.graph_node_id,
               .graph = record.graph_id};
  Place(work);
}

void TraceStream::OnMemset(const cupti::MemsetRecord& record) {
  absl::MutexLock lock(&mutex_);
  auto& name =
      names_[absl::StrCat("Memset (", MemoryKindName(record.memory_kind), ")")];
  if (name == nullptr) {
    name = std::make_unique<std::string>(
        absl::StrCat("Memset (", MemoryKindName(record.memory_kind), ")"));
  }
  Work work = {.start_ns = static_cast<int64_t>(record.start),
               .end_ns = static_cast<int64_t>(record.end),
               .category = "gpu_memset",
               .name = name.get(),
               .device = record.device_id,
               .context = record.context_id,
               .stream = record.stream_id,
               .correlation = record.correlation_id,
               .bytes = static_cast<int64_t>(record.bytes),
               .grid = {},
               .block = {},
               .registers = 0,
               .shared_memory = 0,
               .graph_node = record.graph_node_id,
               .graph = record.graph_id};
  Place(work);
}

void TraceStream::OnSync(const cupti::SyncRecord& record) {
  absl::MutexLock lock(&mutex_);
  // The API call that waited is on its thread's track already; this counts.
  if (options_.keep_all ||
      regions_->Contains(static_cast<int64_t>(record.start))) {
    ++counts_.sync_count;
  }
}

void TraceStream::OnOverhead(const cupti::OverheadRecord& record) {
  absl::MutexLock lock(&mutex_);
  if (record.end > record.start) {
    counts_.cupti_overhead_ns +=
        static_cast<int64_t>(record.end - record.start);
  }
}

void TraceStream::Place(const Work& work) {
  // An end of 0 is CUPTI's for work it gave up on.
  if (work.end_ns <= 0 || work.start_ns <= 0) {
    ++counts_.outside_count;
    return;
  }
  if (options_.keep_all || kept_.contains(work.correlation)) {
    Emit(work);
    return;
  }
  if (waiting_order_.size() >= kMaxWaiting) {
    SettleWaiting(waiting_order_.front(), false);
    waiting_order_.pop_front();
  }
  waiting_[work.correlation].push_back(work);
  waiting_order_.push_back(work.correlation);
}

// The launch of `correlation` is known: its work is written, or left out.
void TraceStream::SettleWaiting(uint32_t correlation, bool keep) {
  const auto found = waiting_.find(correlation);
  if (found == waiting_.end()) return;
  for (const Work& work : found->second) {
    if (keep) {
      Emit(work);
    } else {
      ++counts_.outside_count;
    }
  }
  waiting_.erase(found);
}

uint64_t TraceStream::StreamTrack(const Work& work) {
  uint64_t& device = devices_[work.device];
  if (device == 0) {
    device = writer_.AddTrack(absl::StrCat("GPU ", work.device), process_);
  }
  Stream& stream = streams_[uint64_t{work.device} << 32 | work.stream];
  for (Stream::Lane& lane : stream.lanes) {
    if (work.start_ns < lane.end_ns) continue;
    lane.end_ns = work.end_ns;
    return lane.track;
  }
  if (stream.lanes.size() < kMaxLanes) {
    stream.lanes.push_back(
        {writer_.AddTrack(absl::StrCat("stream ", work.stream), device),
         work.end_ns});
  }
  return stream.lanes.back().track;
}

void TraceStream::Emit(const Work& work) {
  if (OverBudget()) return;
  TraceAnnotation annotations[16];
  size_t n = 0;
  annotations[n++] = {"device", int64_t{work.device}};
  annotations[n++] = {"context", int64_t{work.context}};
  annotations[n++] = {"stream", int64_t{work.stream}};
  annotations[n++] = {"correlation", int64_t{work.correlation}};
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
  const uint64_t track = StreamTrack(work);
  writer_.BeginSlice(track, work.start_ns, *work.name,
                     {.category = work.category,
                      .annotations = absl::MakeConstSpan(annotations, n)});
  writer_.EndSlice(track, work.end_ns);
  if (bytes_.size() >= kWriteBytes) static_cast<void>(WriteOut());
}

absl::Status TraceStream::Flush(bool last) {
  absl::MutexLock lock(&mutex_);
  if (last) {
    for (const auto& [correlation, works] : waiting_) {
      for (const Work& work : works) {
        if (counts_.api_seen_count == 0 && regions_->Contains(work.start_ns)) {
          ++counts_.by_time_count;
          Emit(work);
        } else {
          ++counts_.outside_count;
        }
      }
    }
    waiting_.clear();
    waiting_order_.clear();
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
