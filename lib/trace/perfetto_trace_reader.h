// Perfetto protobuf traces, read as events. See trace_reader.h.
//
// A slice becomes one X event when it ends. Its annotations become args; its
// process and thread come from its track. Work of a device (category kernel,
// gpu_memcpy, gpu_memset, gpu_user_annotation) gets pid and tid from its device
// and stream annotations, as Kineto's JSON has them. Reads what track-event
// writers write; other packets (ftrace, GPU counters) are passed over.

#ifndef LIB_TRACE_PERFETTO_TRACE_READER_H_
#define LIB_TRACE_PERFETTO_TRACE_READER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/trace/read_buffer.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {

class PerfettoTraceReader : public TraceReader {
 public:
  // `buffer` holds the first bytes.
  PerfettoTraceReader(ReadBuffer buffer, const std::string& name);

  absl::StatusOr<bool> Next(TraceEvent* event) override;

 private:
  using Strings = absl::flat_hash_map<uint64_t, std::string>;

  struct Sequence {
    Strings categories;
    Strings names;
    Strings annotation_names;
  };
  struct Track {
    uint64_t parent = 0;
    bool has_process = false;
    bool has_thread = false;
    int64_t pid = 0;
    int64_t tid = 0;
    std::string name;
  };
  // An event that owns its text: views in a TraceEvent point into it.
  struct Owned {
    char phase = 'X';
    std::string category;
    std::string name;
    std::string args;
    std::string raw;
    int64_t pid = 0;
    int64_t tid = 0;
    int64_t time_ns = 0;
    int64_t duration_ns = 0;
    uint64_t offset = 0;
  };

  absl::StatusOr<bool> ReadPacket();
  void Packet(absl::string_view packet);
  void ReadInterned(absl::string_view data, Sequence* sequence);
  void ReadClocks(absl::string_view snapshot);
  void ReadTrack(absl::string_view descriptor);
  void ReadEvent(absl::string_view event, int64_t time_ns,
                 const Sequence& sequence);
  void SetPlace(uint64_t track, Owned* event) const;
  void Emit(Owned event);
  void EmitName(absl::string_view what, int64_t pid, int64_t tid,
                absl::string_view name);

  ReadBuffer buffer_;
  bool done_ = false;
  absl::flat_hash_map<uint64_t, Sequence> sequences_;
  absl::flat_hash_map<uint64_t, Track> tracks_;
  absl::flat_hash_map<uint64_t, std::vector<Owned>> open_;  // by track
  std::deque<Owned> ready_;
  Owned current_;
};

}  // namespace firstframe

#endif  // LIB_TRACE_PERFETTO_TRACE_READER_H_
