// The file a session records into: Perfetto packets, appended as they come.
//
// Whatever ends the process, the file is a trace of all that was flushed
// before. Host spans go to their thread's track, API calls to a track below it,
// a device's work to a track a stream. Work of a device is kept when its launch
// was made while a region was open; work whose launch is not known yet waits.
// Regions, launches and work carry "External id", the number of the entry into
// the region, which joins them also across threads.

#ifndef LIB_PROFILER_TRACE_STREAM_H_
#define LIB_PROFILER_TRACE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/perfetto/trace_writer.h"
#include "lib/profiler/cupti_collector.h"
#include "lib/profiler/gpu_work.h"
#include "lib/profiler/launch_join.h"
#include "lib/profiler/region_clock.h"

namespace firstframe {

struct TraceStreamOptions {
  int64_t pid = 0;
  std::string process_name;
  // Bytes written before everything further is dropped.
  int64_t max_bytes = int64_t{4} << 30;
  // Keep all work of devices, inside and outside of regions.
  bool keep_all = false;
};

struct TraceStreamCounts {
  int64_t span_count = 0;
  int64_t api_count = 0;
  int64_t kernel_count = 0;
  int64_t copy_count = 0;  // memsets included
  int64_t sync_count = 0;
  int64_t api_seen_count = 0;  // kept or not
  // Kept by the time it ran, since no API call was delivered at all.
  int64_t by_time_count = 0;
  int64_t outside_count = 0;      // made outside of regions, left out
  int64_t over_budget_count = 0;  // dropped past max_bytes
  int64_t size_bytes = 0;
  int64_t cupti_overhead_ns = 0;  // CUPTI's own, as it reports it
};

// Thread-safe.
class TraceStream : public CuptiSink {
 public:
  // Creates `path`. `regions` must outlive the stream.
  static absl::StatusOr<std::unique_ptr<TraceStream>> Create(
      const std::string& path, const TraceStreamOptions& options,
      const RegionClock* regions);
  ~TraceStream() override;

  // `region`: the number of this entry into a region, which its launches and
  // their work carry too; 0: a span of no region.
  void Span(int64_t tid, int64_t start_ns, int64_t end_ns,
            absl::string_view name, uint32_t region = 0);
  void Instant(int64_t tid, int64_t time_ns, absl::string_view name);

  // A call of CUDA's, by the thread that made it. `region`: it was made in; 0:
  // in none.
  struct Call {
    int64_t tid;
    int64_t start_ns, end_ns;
    absl::string_view name;
    uint32_t cbid;
    bool is_driver;
    uint32_t correlation;
    uint32_t region;
  };
  void AddCall(const Call& call);

  // A region as CUDA events see it.
  void DeviceSpan(uint32_t device, int64_t start_ns, int64_t end_ns,
                  absl::string_view name, uint32_t region);

  // Reads the clocks beside each other, which places the trace in time.
  void SnapshotClocks();

  void OnExternal(const cupti::ExternalRecord& record) override;
  void OnApi(const cupti::ApiRecord& record, absl::string_view name,
             bool is_driver) override;
  void OnKernel(const cupti::KernelRecord& record) override;
  void OnMemcpy(const cupti::MemcpyRecord& record) override;
  void OnMemset(const cupti::MemsetRecord& record) override;
  void OnOverhead(const cupti::OverheadRecord& record) override;

  // Appends what is buffered to the file. With `last`, work that still waits
  // for its launch is given up (it was launched outside); when no launch was
  // delivered at all, it is kept by the time it ran instead.
  absl::Status Flush(bool last);

  TraceStreamCounts counts() const;
  const std::string& path() const { return path_; }

 private:
  struct Stream {
    struct Lane {
      uint64_t track;
      int64_t end_ns;
    };
    std::vector<Lane> lanes;
  };

  TraceStream(std::string path, int fd, const TraceStreamOptions& options,
              const RegionClock* regions);

  void PutCall(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OverBudget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t ThreadTrack(int64_t tid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t ApiTrack(int64_t tid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A track of the device's on which nothing else runs in that time.
  uint64_t DeviceTrack(uint32_t device, uint32_t stream, absl::string_view name,
                       int64_t start_ns, int64_t end_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Place(const GpuWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const GpuWork& work, bool keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Emit(const GpuWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const int fd_;
  const TraceStreamOptions options_;
  const RegionClock* const regions_;
  mutable absl::Mutex mutex_;
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  TraceWriter writer_ ABSL_GUARDED_BY(mutex_);
  uint64_t process_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<int64_t, uint64_t> threads_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, uint64_t> api_tracks_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, uint64_t> devices_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  GpuWorkDecoder decoder_ ABSL_GUARDED_BY(mutex_);
  LaunchJoin join_ ABSL_GUARDED_BY(mutex_);
  // The external id that CUPTI delivered last: of the call that follows.
  cupti::ExternalRecord external_ ABSL_GUARDED_BY(mutex_) = {};
  TraceStreamCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_PROFILER_TRACE_STREAM_H_
