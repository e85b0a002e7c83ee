// Chrome trace JSON, read as it comes. See trace_reader.h.

#ifndef LIB_TRACE_JSON_TRACE_READER_H_
#define LIB_TRACE_JSON_TRACE_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/read_buffer.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {

class JsonTraceReader : public TraceReader {
 public:
  // `buffer` holds the first bytes.
  JsonTraceReader(ReadBuffer buffer, const std::string& name);

  absl::StatusOr<bool> Next(TraceEvent* event) override;

 private:
  enum class State { kStart, kMembers, kEvents, kDone };
  enum class Parsed { kOk, kNeedMore, kMalformed };

  absl::StatusOr<bool> ToNextItem();
  absl::StatusOr<bool> Start();
  absl::StatusOr<bool> Member();
  absl::Status NoEventsError() const;
  absl::StatusOr<bool> SkipBrokenEvent();
  absl::StatusOr<bool> Finish();
  void NoteDamage(const absl::Status& status);
  Parsed ParseEvent(const char* p, const char* end, TraceEvent* event);
  Parsed ParseMembers(const char* p, const char* end, TraceEvent* event,
                      JsonOddities* oddities);
  bool SetField(absl::string_view key, absl::string_view value,
                const JsonOddities& oddities, TraceEvent* event);
  void SetNumberOrText(absl::string_view value, int64_t* number,
                       absl::string_view* text);
  void SetTime(absl::string_view value, int64_t* time, bool* has_time);
  void KeepMember(absl::string_view key, absl::string_view value);
  uint64_t OffsetOf(const char* p) const {
    return buffer_.offset() + (p - buffer_.begin());
  }

  ReadBuffer buffer_;
  State state_ = State::kStart;
  bool after_comma_ = true;  // nothing, or a comma, before the next item
  bool first_item_ = true;
  bool finished_ = false;
  bool has_events_ = false;  // the list is there, whatever is in it
};

}  // namespace firstframe

#endif  // LIB_TRACE_JSON_TRACE_READER_H_
