// Reads the events of a trace file one at a time, in constant memory.
//
//   FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(path));
//   for (;;) {
//     TraceEvent event;
//     FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
//     if (!more) break;
//     ...
//   }
//
// Takes Chrome trace JSON as any Kineto wrote it (object or bare array, plain
// or gzip, cut short or damaged in the ways tracers damage it) and Perfetto
// protobuf traces. What was not as it should be is counted in info().oddities;
// only a file that is no trace at all is an error.

#ifndef LIB_TRACE_TRACE_READER_H_
#define LIB_TRACE_TRACE_READER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/byte_source.h"
#include "lib/trace/trace_event.h"

namespace firstframe {

enum class TraceOddity {
  kTruncated,       // the file ends inside an event or before its last bracket
  kTruncatedGzip,   // the gzip stream has no end, or is damaged
  kMalformedEvent,  // an event could not be read and was passed over
  kControlCharacter,  // an unescaped control character inside a string
  kInvalidUtf8,       // bytes in a string that are not UTF-8
  kInnerQuote,        // an unescaped quote inside a string
  kBareWord,          // NaN, Infinity, N/A where a value should be
  kMissingKeyQuote,   // a key without its opening quote
  kExtraComma,        // a comma before the first or after the last item
  kMissingComma,      // none between two events
  kTimeIsText,        // ts or dur in quotes
  kTrailingData,      // bytes after the end of the document
};
inline constexpr int kTraceOddityCount = 12;

// Returns "truncated", "control_character", ...
const char* TraceOddityName(TraceOddity oddity);

struct TraceOddityNote {
  int64_t count = 0;
  uint64_t first_offset = 0;  // in the unpacked file
};

enum class TraceFileFormat { kJsonObject, kJsonArray, kPerfetto };

struct TraceFileInfo {
  std::string path;
  TraceFileFormat format = TraceFileFormat::kJsonObject;
  // Top-level members besides traceEvents: key and raw JSON value, in order.
  // Values above 1 MiB are left out. Complete once Next has returned false:
  // some writers put them after the events.
  std::vector<std::pair<std::string, std::string>> metadata;
  // baseTimeNanoseconds: the epoch ns that event times count from; 0 without.
  int64_t base_time_ns = 0;
  bool has_base_time = false;
  uint64_t unpacked_bytes = 0;
  int64_t event_count = 0;
  std::array<TraceOddityNote, kTraceOddityCount> oddities = {};

  // Returns the raw JSON of a top-level member, or an empty view.
  absl::string_view Metadata(absl::string_view key) const;
  // distributedInfo.rank, or -1.
  int64_t Rank() const;
  const TraceOddityNote& oddity(TraceOddity which) const {
    return oddities[static_cast<int>(which)];
  }
};

// Thread-compatible.
class TraceReader {
 public:
  virtual ~TraceReader() = default;

  // Opens `path` ("-": standard input) and looks at its first bytes. Codes from
  // errno; DataLoss when it is empty or of no known format.
  static absl::StatusOr<std::unique_ptr<TraceReader>> Open(
      const std::string& path);

  // The same over bytes that come from elsewhere; `name` is for messages.
  static absl::StatusOr<std::unique_ptr<TraceReader>> FromSource(
      std::unique_ptr<ByteSource> source, const std::string& name);

  // Reads the next event; false after the last. Views in `*event` last until
  // the next call. I/O errors, and DataLoss for a JSON object that is whole and
  // has no list of events; other damage is an oddity, not an error.
  virtual absl::StatusOr<bool> Next(TraceEvent* event) = 0;

  const TraceFileInfo& info() const { return info_; }

 protected:
  void Note(TraceOddity oddity, uint64_t offset) {
    TraceOddityNote& note = info_.oddities[static_cast<int>(oddity)];
    if (note.count++ == 0) note.first_offset = offset;
  }

  TraceFileInfo info_;
};

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_READER_H_
