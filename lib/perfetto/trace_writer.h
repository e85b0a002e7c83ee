// Writes a Perfetto trace (https://ui.perfetto.dev) as track events.
//
// The file is a sequence of packets with no header: it is valid at every packet
// boundary, so a crash loses at most the packet being written. The writer
// appends whole packets to a string; the caller may move that string's bytes to
// a file and clear it between any two calls.
//
//   std::string bytes;
//   TraceWriter trace(&bytes);
//   const uint64_t process = trace.AddProcess(getpid(), "vae_startup");
//   const uint64_t thread = trace.AddThread(process, getpid(), "main");
//   trace.BeginSlice(thread, start_ns, "first_decode");
//   trace.EndSlice(thread, end_ns);
//
// Rules of the format that the caller keeps:
// - On one track, begins and ends nest. Work that overlaps (two CUDA streams,
//   two threads) goes to a track each.
// - Packets need not be sorted by time; those of equal time keep their order in
//   the file, so write a parent's begin before its children and its end after.
// - Negative times cannot be written: they become 0.
//
// Names and strings are stored once and referred to by number. Bytes that are
// not UTF-8 become U+FFFD. Thread-compatible: one writer a thread, each with
// its own sequence_id, whose outputs may be concatenated. Field numbers:
// perfetto/protos/perfetto/trace, read 2026-08; tests decode with their own
// schema subset (perfetto_subset.proto).

#ifndef LIB_PERFETTO_TRACE_WRITER_H_
#define LIB_PERFETTO_TRACE_WRITER_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/perfetto/proto_writer.h"

namespace firstframe {

// Perfetto's built-in clock ids.
enum class TraceClock : uint32_t {
  kRealtime = 1,
  kMonotonic = 3,
  kMonotonicRaw = 5,
  kBoottime = 6,
};

// A named value shown with a slice. Views need to live until the call returns.
struct TraceAnnotation {
  absl::string_view name;
  std::variant<bool, int64_t, uint64_t, double, absl::string_view> value;
};

struct SliceDetails {
  absl::string_view category;  // empty: none
  absl::Span<const TraceAnnotation> annotations;
  // Slices that share a flow id are joined by an arrow, in order of time.
  absl::Span<const uint64_t> flow_ids;
};

class TraceWriter {
 public:
  struct Options {
    // Nonzero; different for each writer whose output goes to the same file.
    uint32_t sequence_id = 1;
    // The clock of every timestamp given, and of the viewer's time axis.
    TraceClock clock = TraceClock::kMonotonic;
  };

  // Appends to `*out`, which must outlive the writer.
  explicit TraceWriter(std::string* out) : TraceWriter(out, Options{}) {}
  TraceWriter(std::string* out, Options options);

  // Each returns the track's id, which is unique among all writers of different
  // sequence_id.
  uint64_t AddProcess(int64_t pid, absl::string_view name);
  // `process` is a track that AddProcess of the same `pid` returned.
  uint64_t AddThread(uint64_t process, int64_t pid, int64_t tid,
                     absl::string_view name);
  // A track inside `parent` (0: at the top). Siblings are shown in the order in
  // which they were added.
  uint64_t AddTrack(absl::string_view name, uint64_t parent);
  // A graph; `unit` is shown beside the values ("bytes", "GB/s").
  uint64_t AddCounter(absl::string_view name, uint64_t parent,
                      absl::string_view unit);

  void BeginSlice(uint64_t track, int64_t time_ns, absl::string_view name,
                  const SliceDetails& details = {});
  void EndSlice(uint64_t track, int64_t time_ns);
  void Instant(uint64_t track, int64_t time_ns, absl::string_view name,
               const SliceDetails& details = {});
  void Counter(uint64_t track, int64_t time_ns, double value);

  struct ClockReading {
    TraceClock clock;
    int64_t time_ns;
  };
  // States that `readings` were taken at one moment, which lets a viewer place
  // events of other clocks, and merge with traces made elsewhere.
  void ClockSnapshot(absl::Span<const ClockReading> readings);

 private:
  struct Interned {
    uint64_t id = 0;
    bool is_new = false;
  };
  using Table = absl::flat_hash_map<std::string, uint64_t>;

  static Interned Intern(absl::string_view text, Table* table);
  uint64_t NewTrack() { return next_track_++; }
  template <typename WriteFields>
  void Packet(int64_t time_ns, WriteFields&& write_fields);
  template <typename WriteFields>
  uint64_t Descriptor(absl::string_view name, uint64_t parent,
                      WriteFields&& write_fields);
  void NamedEvent(int type, uint64_t track, int64_t time_ns,
                  absl::string_view name, const SliceDetails& details);
  void WriteAnnotation(const TraceAnnotation& annotation, uint64_t name_id);

  const Options options_;
  ProtoWriter proto_;
  uint64_t next_track_;
  uint64_t siblings_ = 0;
  Table names_;
  Table categories_;
  Table annotation_names_;
  std::vector<Interned> scratch_;
};

// Wraps `packets` (whole packets, as TraceWriter appends them) into one
// deflate-compressed packet and appends it to `*out`. Wrap some 512 KiB at a
// time: a reader has to inflate a packet whole.
void AppendCompressedPackets(absl::string_view packets, std::string* out);

}  // namespace firstframe

#endif  // LIB_PERFETTO_TRACE_WRITER_H_
