#include "lib/trace/json_trace_reader.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "lib/base/status_macros.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// Whether an event's object may begin at `p`, for finding one's way back after
// damage: a brace whose first key is one that events have.
bool LooksLikeEvent(const char* p, const char* end) {
  p = SkipJsonSpace(p + 1, end);
  for (absl::string_view key : {"\"ph\"", "\"name\"", "\"cat\"", "\"pid\"",
                                "\"ts\"", "\"args\"", "\"tid\"", "\"id\""}) {
    if (static_cast<size_t>(end - p) >= key.size() &&
        absl::string_view(p, key.size()) == key) {
      return true;
    }
  }
  return false;
}

}  // namespace

JsonTraceReader::JsonTraceReader(ReadBuffer buffer, const std::string& name)
    : buffer_(std::move(buffer)) {
  info_.path = name;
}

absl::StatusOr<bool> JsonTraceReader::Next(TraceEvent* event) {
  while (state_ == State::kStart || state_ == State::kMembers) {
    FF_ASSIGN_OR_RETURN(const bool more,
                        state_ == State::kStart ? Start() : Member());
    if (!more) return Finish();
  }
  while (state_ == State::kEvents) {
    FF_ASSIGN_OR_RETURN(const bool more, ToNextItem());
    if (!more) return Finish();
    const char c = *buffer_.begin();
    if (c == ',') {
      if (after_comma_) Note(TraceOddity::kExtraComma, buffer_.offset());
      after_comma_ = true;
      buffer_.AdvanceTo(buffer_.begin() + 1);
      continue;
    }
    if (c == ']') {
      if (after_comma_ && !first_item_) {
        Note(TraceOddity::kExtraComma, buffer_.offset());
      }
      buffer_.AdvanceTo(buffer_.begin() + 1);
      if (info_.format == TraceFileFormat::kJsonArray) {
        state_ = State::kDone;
        FF_ASSIGN_OR_RETURN(const bool trailing, ToNextItem());
        if (trailing) Note(TraceOddity::kTrailingData, buffer_.offset());
        break;
      }
      state_ = State::kMembers;
      return Next(event);
    }
    if (c != '{') {
      FF_ASSIGN_OR_RETURN(const bool found, SkipBrokenEvent());
      if (!found) return Finish();
      continue;
    }
    if (!after_comma_) Note(TraceOddity::kMissingComma, buffer_.offset());
    *event = TraceEvent{};
    const Parsed parsed = ParseEvent(buffer_.begin(), buffer_.end(), event);
    if (parsed == Parsed::kOk) {
      after_comma_ = false;
      first_item_ = false;
      ++info_.event_count;
      buffer_.AdvanceTo(event->raw.data() + event->raw.size());
      return true;
    }
    if (parsed == Parsed::kNeedMore) {
      const absl::StatusOr<bool> filled = buffer_.Fill();
      if (filled.ok() && *filled) continue;
      if (!filled.ok()) NoteDamage(filled.status());
      // The event has no end: either the file was cut here, or a quote or a
      // bracket inside it is lost and later events stand in its text.
      FF_ASSIGN_OR_RETURN(const bool found, SkipBrokenEvent());
      if (!found) return Finish();
      continue;
    }
    FF_ASSIGN_OR_RETURN(const bool found, SkipBrokenEvent());
    if (!found) return Finish();
  }
  return Finish();
}

absl::StatusOr<bool> JsonTraceReader::Start() {
  if (buffer_.data().substr(0, 3) == "\xef\xbb\xbf") {
    buffer_.AdvanceTo(buffer_.begin() + 3);
  }
  FF_ASSIGN_OR_RETURN(const bool more, ToNextItem());
  if (!more) return false;
  if (*buffer_.begin() == '[') {
    info_.format = TraceFileFormat::kJsonArray;
    state_ = State::kEvents;
  } else {
    info_.format = TraceFileFormat::kJsonObject;
    state_ = State::kMembers;
  }
  buffer_.AdvanceTo(buffer_.begin() + 1);
  return true;
}

// Steps over one member of the document's object, or into traceEvents.
absl::StatusOr<bool> JsonTraceReader::Member() {
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool more, ToNextItem());
    if (!more) return false;
    const char c = *buffer_.begin();
    if (c == ',') {
      buffer_.AdvanceTo(buffer_.begin() + 1);
      continue;
    }
    if (c == '}') {
      if (!has_events_) return NoEventsError();
      buffer_.AdvanceTo(buffer_.begin() + 1);
      state_ = State::kDone;
      FF_ASSIGN_OR_RETURN(const bool trailing, ToNextItem());
      if (trailing) Note(TraceOddity::kTrailingData, buffer_.offset());
      return true;
    }
    const char* const end = buffer_.end();
    const char* p = buffer_.begin();
    JsonOddities oddities;
    const char* key_end = nullptr;
    absl::string_view key;
    if (*p == '"') {
      key_end = FindStringEnd(p + 1, end, &oddities);
      if (key_end != nullptr) key = absl::string_view(p + 1, key_end - p - 1);
      if (key_end != nullptr) ++key_end;
    } else {
      // A key without quotes, or damage; a lone byte is stepped over.
      key_end = SkipJsonToken(p, end);
      key = absl::string_view(p, key_end - p);
      if (key_end != end && (key_end == p || *key_end == '"')) ++key_end;
      Note(TraceOddity::kMissingKeyQuote, buffer_.offset());
    }
    if (key_end != nullptr && key_end != end) {
      const char* value = SkipJsonSpace(key_end, end);
      if (value != end && *value == ':') {
        value = SkipJsonSpace(value + 1, end);
      } else if (value != end) {
        buffer_.AdvanceTo(key_end);  // not a member at all
        continue;
      }
      if (value != end && key == "traceEvents" && *value == '[') {
        buffer_.AdvanceTo(value + 1);
        state_ = State::kEvents;
        has_events_ = true;
        after_comma_ = true;
        first_item_ = true;
        return true;
      }
      const char* const after = SkipJsonValue(value, end, &oddities);
      if (after != nullptr) {
        KeepMember(key, absl::string_view(value, after - value));
        buffer_.AdvanceTo(after == value ? value + 1 : after);
        return true;
      }
    }
    const absl::StatusOr<bool> filled = buffer_.Fill();
    if (!filled.ok()) NoteDamage(filled.status());
    if (!filled.ok() || !*filled) return false;
  }
}

absl::StatusOr<bool> JsonTraceReader::ToNextItem() {
  for (;;) {
    buffer_.AdvanceTo(SkipJsonSpace(buffer_.begin(), buffer_.end()));
    if (buffer_.begin() != buffer_.end()) return true;
    const absl::StatusOr<bool> filled = buffer_.Fill();
    if (!filled.ok()) NoteDamage(filled.status());
    if (!filled.ok() || !*filled) return false;
  }
}

// A gzip stream that breaks off ends the trace; what came before counts.
void JsonTraceReader::NoteDamage(const absl::Status&) {
  Note(TraceOddity::kTruncatedGzip, buffer_.offset());
}

absl::StatusOr<bool> JsonTraceReader::Finish() {
  if (finished_) return false;
  finished_ = true;
  if (state_ != State::kDone) Note(TraceOddity::kTruncated, buffer_.offset());
  state_ = State::kDone;
  if (buffer_.truncated() &&
      info_.oddity(TraceOddity::kTruncatedGzip).count == 0) {
    Note(TraceOddity::kTruncatedGzip, buffer_.offset());
  }
  info_.unpacked_bytes = buffer_.offset();
  return false;
}

// Moves past the event at the position to the next that looks like one.
absl::StatusOr<bool> JsonTraceReader::SkipBrokenEvent() {
  const uint64_t start = buffer_.offset();
  buffer_.AdvanceTo(buffer_.begin() + 1);
  for (;;) {
    const char* const end = buffer_.end();
    for (const char* p = buffer_.begin(); p < end; ++p) {
      // 32 bytes: room for white space and the first key.
      if (*p != '{' || end - p < 32) continue;
      if (!LooksLikeEvent(p, end)) continue;
      const char* before = p;
      while (before > buffer_.begin() && absl::ascii_isspace(before[-1])) {
        --before;
      }
      if (before > buffer_.begin() && before[-1] == ':') continue;  // its args
      Note(TraceOddity::kMalformedEvent, start);
      after_comma_ = true;
      buffer_.AdvanceTo(p);
      return true;
    }
    if (end - buffer_.begin() > 32) buffer_.AdvanceTo(end - 32);
    const absl::StatusOr<bool> filled = buffer_.Fill();
    if (!filled.ok()) NoteDamage(filled.status());
    if (!filled.ok() || !*filled) {
      buffer_.AdvanceTo(buffer_.end());
      return false;  // Finish() notes the truncation
    }
  }
}

JsonTraceReader::Parsed JsonTraceReader::ParseEvent(const char* p,
                                                    const char* end,
                                                    TraceEvent* event) {
  JsonOddities oddities;
  event->offset = buffer_.offset();
  const Parsed parsed = ParseMembers(p, end, event, &oddities);
  if (parsed != Parsed::kOk) return parsed;
  const uint64_t offset = event->offset;
  if (oddities.control_character) {
    Note(TraceOddity::kControlCharacter, offset);
  }
  if (oddities.inner_quote) Note(TraceOddity::kInnerQuote, offset);
  if (oddities.bare_word) Note(TraceOddity::kBareWord, offset);
  if (oddities.non_ascii && FindInvalidUtf8(event->raw) != event->raw.size()) {
    Note(TraceOddity::kInvalidUtf8, offset);
  }
  return Parsed::kOk;
}

JsonTraceReader::Parsed JsonTraceReader::ParseMembers(const char* p,
                                                      const char* end,
                                                      TraceEvent* event,
                                                      JsonOddities* oddities) {
  const char* const start = p++;
  bool after_comma = true;
  for (;;) {
    p = SkipJsonSpace(p, end);
    if (p == end) return Parsed::kNeedMore;
    if (*p == '}') {
      if (after_comma && p != start + 1 && event->phase != 0) {
        Note(TraceOddity::kExtraComma, OffsetOf(p));
      }
      event->raw = absl::string_view(start, p + 1 - start);
      return Parsed::kOk;
    }
    if (*p == ',') {
      after_comma = true;
      ++p;
      continue;
    }
    absl::string_view key;
    if (*p == '"') {
      const char* const close = FindStringEnd(p + 1, end, oddities);
      if (close == nullptr) return Parsed::kNeedMore;
      key = absl::string_view(p + 1, close - p - 1);
      p = close + 1;
    } else {
      const char* const after = SkipJsonToken(p, end);
      if (after == end) return Parsed::kNeedMore;
      if (after == p || *after != '"') return Parsed::kMalformed;
      Note(TraceOddity::kMissingKeyQuote, OffsetOf(p));
      key = absl::string_view(p, after - p);
      p = after + 1;
    }
    p = SkipJsonSpace(p, end);
    if (p == end) return Parsed::kNeedMore;
    if (*p != ':') return Parsed::kMalformed;
    p = SkipJsonSpace(p + 1, end);
    if (p == end) return Parsed::kNeedMore;
    JsonOddities own;
    const char* const after = SkipJsonValue(p, end, &own);
    if (after == nullptr) return Parsed::kNeedMore;
    if (after == p ||
        !SetField(key, absl::string_view(p, after - p), own, event)) {
      return Parsed::kMalformed;
    }
    oddities->control_character |= own.control_character;
    oddities->non_ascii |= own.non_ascii;
    oddities->inner_quote |= own.inner_quote;
    oddities->bare_word |= own.bare_word;
    after_comma = false;
    p = after;
  }
}

// Returns false when the value cannot be one of that field's.
bool JsonTraceReader::SetField(absl::string_view key, absl::string_view value,
                               const JsonOddities& oddities,
                               TraceEvent* event) {
  switch (key.size()) {
    case 2:
      if (key == "ts") {
        SetTime(value, &event->time_ns, &event->has_time);
      } else if (key == "ph") {
        if (value.size() < 3 || value[0] != '"') return false;
        event->phase = value[1];
      } else if (key == "id") {
        event->id = UnquoteJson(value);
      }
      break;
    case 3:
      if (key == "cat") {
        event->category = UnquoteJson(value);
        event->kind = TraceEventKindOf(event->category);
      } else if (key == "dur") {
        SetTime(value, &event->duration_ns, &event->has_duration);
      } else if (key == "pid") {
        SetNumberOrText(value, &event->pid, &event->pid_text);
      } else if (key == "tid") {
        SetNumberOrText(value, &event->tid, &event->tid_text);
      }
      break;
    case 4:
      if (key == "name") {
        event->name = UnquoteJson(value);
        event->name_is_escaped = oddities.backslash;
      } else if (key == "args") {
        event->args = value;
      }
      break;
  }
  return true;
}

void JsonTraceReader::SetNumberOrText(absl::string_view value, int64_t* number,
                                      absl::string_view* text) {
  if (!value.empty() && value[0] != '"' && absl::SimpleAtoi(value, number)) {
    return;
  }
  *text = UnquoteJson(value);
  // "514" in quotes is the number, too.
  if (absl::SimpleAtoi(*text, number)) {
    *text = {};
    return;
  }
  *number = static_cast<int64_t>(absl::Hash<absl::string_view>()(*text) |
                                 uint64_t{1} << 63);
}

void JsonTraceReader::SetTime(absl::string_view value, int64_t* time,
                              bool* has_time) {
  if (!value.empty() && value[0] == '"') {
    Note(TraceOddity::kTimeIsText, OffsetOf(value.data()));
    value = UnquoteJson(value);
  }
  *has_time = ParseMicroseconds(value, time);
}

}  // namespace firstframe
