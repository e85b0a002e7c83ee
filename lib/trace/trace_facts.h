// What a trace's events hold that the programs that open traces care about.

#ifndef LIB_TRACE_TRACE_FACTS_H_
#define LIB_TRACE_TRACE_FACTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "lib/trace/spill_sorter.h"
#include "lib/trace/trace_event.h"

namespace firstframe {

// Gathered in constant memory. Thread-compatible.
class TraceFacts {
 public:
  // How often something was seen, and where first: an offset in the unpacked
  // file, -1: not at one place.
  struct Seen {
    int64_t count = 0;
    int64_t first_offset = -1;

    void At(uint64_t offset) {
      if (count++ == 0) first_offset = static_cast<int64_t>(offset);
    }
  };

  // Events that do not fit into memory go to a file in `temporary_folder`.
  explicit TraceFacts(const std::string& temporary_folder)
      : slices_(size_t{12} << 20, temporary_folder) {}

  absl::Status Look(const TraceEvent& event);

  // Once, after the last event: slices that partly overlap another on their
  // track.
  absl::Status CountOverlaps(Seen* overlaps);

  Seen bad_time, bad_duration, no_duration;
  Seen negative_pid, wide_tid;
  Seen negative_time, epoch_time;
  Seen huge_number;
  Seen args_not_object, bare_word_in_args;
  Seen no_name, no_category;
  Seen host_with_stream, stream_zero;
  Seen submicrosecond;  // kernels
  Seen linked;          // events with a stream and a correlation
  Seen launches;
  Seen gpu_launch_names;  // launches by which HTA tells the GPU's maker
  bool first_is_launch = false;
  std::set<std::string> steps;  // the first four ProfilerStep#N
  std::set<int64_t> host_pids, devices;
  int64_t iteration_start_ns = INT64_MIN, window_end_ns = INT64_MIN;

 private:
  // Slices on one track of Perfetto's.
  struct TrackSlice {
    int64_t start;
    int64_t end;
    uint64_t track;
    uint64_t offset;
  };
  struct TrackOrder {
    bool operator()(const TrackSlice& a, const TrackSlice& b) const {
      return std::tie(a.track, a.start, b.end) <
             std::tie(b.track, b.start, a.end);
    }
  };

  void LookAtArgs(const TraceEvent& event);
  void LookAtNumbers(const TraceEvent& event);

  SpillSorter<TrackSlice, TrackOrder> slices_;
  int64_t events_ = 0;
};

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_FACTS_H_
