#include "lib/trace/perfetto_trace_reader.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/perfetto/proto_reader.h"
#include "lib/trace/inflate_packets.h"
#include "lib/trace/json_scan.h"

namespace firstframe {
namespace {

constexpr uint64_t kRealtimeClock = 1;
constexpr uint64_t kMonotonicClock = 3;

absl::string_view Lookup(
    const absl::flat_hash_map<uint64_t, std::string>& strings, uint64_t id) {
  const auto found = strings.find(id);
  return found == strings.end() ? absl::string_view() : found->second;
}

}  // namespace

PerfettoTraceReader::PerfettoTraceReader(ReadBuffer buffer,
                                         const std::string& name)
    : buffer_(std::move(buffer)) {
  info_.path = name;
  info_.format = TraceFileFormat::kPerfetto;
}

absl::StatusOr<bool> PerfettoTraceReader::Next(TraceEvent* event) {
  while (ready_.empty()) {
    if (done_) return false;
    FF_ASSIGN_OR_RETURN(const bool more, ReadPacket());
    if (more) continue;
    done_ = true;
    // Slices that never ended: the process was killed inside them.
    for (auto& [track, stack] : open_) {
      for (Owned& slice : stack) {
        slice.phase = 'B';
        Emit(std::move(slice));
      }
    }
    open_.clear();
    if (buffer_.truncated()) {
      Note(TraceOddity::kTruncatedGzip, buffer_.offset());
    }
    info_.unpacked_bytes = buffer_.offset();
  }
  current_ = std::move(ready_.front());
  ready_.pop_front();
  *event = TraceEvent{};
  event->phase = current_.phase;
  event->category = current_.category;
  event->kind = TraceEventKindOf(current_.category);
  event->name = current_.name;
  event->name_is_escaped = current_.name.find('\\') != std::string::npos;
  event->pid = current_.pid;
  event->tid = current_.tid;
  event->has_time = true;
  event->time_ns = current_.time_ns;
  event->has_duration = current_.phase == 'X';
  event->duration_ns = current_.duration_ns;
  event->args = current_.args;
  event->raw = current_.raw;
  event->offset = current_.offset;
  ++info_.event_count;
  return true;
}

// Reads one packet of the file; false at its end.
absl::StatusOr<bool> PerfettoTraceReader::ReadPacket() {
  for (;;) {
    const absl::string_view data = buffer_.data();
    size_t at = 0;
    uint64_t tag = 0, length = 0;
    if (ReadVarint(data, &at, &tag) && ReadVarint(data, &at, &length)) {
      if (tag != (1 << 3 | 2) || length > ReadBuffer::kMaxItemBytes) {
        // Not a packet: nothing after this can be trusted.
        Note(TraceOddity::kMalformedEvent, buffer_.offset());
        buffer_.AdvanceTo(buffer_.end());
        return false;
      }
      if (length <= data.size() - at) {
        Packet(data.substr(at, length));
        buffer_.AdvanceTo(data.data() + at + length);
        return true;
      }
    }
    const absl::StatusOr<bool> filled = buffer_.Fill();
    if (!filled.ok()) Note(TraceOddity::kTruncatedGzip, buffer_.offset());
    if (filled.ok() && *filled) continue;
    if (!buffer_.data().empty()) {
      Note(TraceOddity::kTruncated, buffer_.offset());
    }
    return false;
  }
}

void PerfettoTraceReader::Packet(absl::string_view packet) {
  int64_t time_ns = 0;
  uint64_t sequence_id = 0, flags = 0;
  absl::string_view event, interned;
  ProtoReader reader(packet);
  for (ProtoField field; reader.Next(&field);) {
    switch (field.number) {
      case 6:
        ReadClocks(field.bytes);
        break;
      case 8:
        time_ns = static_cast<int64_t>(field.value);
        break;
      case 10:
        sequence_id = field.value;
        break;
      case 11:
        event = field.bytes;
        break;
      case 12:
        interned = field.bytes;
        break;
      case 13:
        flags = field.value;
        break;
      case 50: {
        const std::string unpacked = InflatePackets(field.bytes);
        if (unpacked.empty()) {
          Note(TraceOddity::kMalformedEvent, buffer_.offset());
        }
        ProtoReader inner(unpacked);
        for (ProtoField sub; inner.Next(&sub);) {
          if (sub.number == 1 && sub.wire_type == 2) Packet(sub.bytes);
        }
        break;
      }
      case 60:
        ReadTrack(field.bytes);
        break;
    }
  }
  if (!reader.ok()) Note(TraceOddity::kMalformedEvent, buffer_.offset());
  Sequence& sequence = sequences_[sequence_id];
  if ((flags & 1) != 0) sequence = Sequence{};
  if (!interned.empty()) ReadInterned(interned, &sequence);
  if (!event.empty()) ReadEvent(event, time_ns, sequence);
}

void PerfettoTraceReader::ReadInterned(absl::string_view data,
                                       Sequence* sequence) {
  ProtoReader reader(data);
  for (ProtoField field; reader.Next(&field);) {
    Strings* table = field.number == 1   ? &sequence->categories
                     : field.number == 2 ? &sequence->names
                     : field.number == 3 ? &sequence->annotation_names
                                         : nullptr;
    if (table == nullptr) continue;
    uint64_t id = 0;
    absl::string_view text;
    ProtoReader entry(field.bytes);
    for (ProtoField part; entry.Next(&part);) {
      if (part.number == 1) id = part.value;
      if (part.number == 2) text = part.bytes;
    }
    (*table)[id] = std::string(text);
  }
}

// A snapshot that reads the wall clock beside another gives the epoch of the
// other's zero: what Kineto calls the base time.
void PerfettoTraceReader::ReadClocks(absl::string_view snapshot) {
  int64_t realtime = -1, monotonic = -1;
  ProtoReader reader(snapshot);
  for (ProtoField field; reader.Next(&field);) {
    if (field.number != 1) continue;
    uint64_t id = 0;
    int64_t time = 0;
    ProtoReader clock(field.bytes);
    for (ProtoField part; clock.Next(&part);) {
      if (part.number == 1) id = part.value;
      if (part.number == 2) time = static_cast<int64_t>(part.value);
    }
    if (id == kRealtimeClock) realtime = time;
    if (id == kMonotonicClock) monotonic = time;
  }
  if (realtime > 0 && monotonic > 0 && !info_.has_base_time) {
    info_.has_base_time = true;
    info_.base_time_ns = realtime - monotonic;
  }
}

void PerfettoTraceReader::ReadTrack(absl::string_view descriptor) {
  uint64_t uuid = 0;
  Track track;
  absl::string_view process_name, thread_name;
  ProtoReader reader(descriptor);
  for (ProtoField field; reader.Next(&field);) {
    if (field.number == 1) uuid = field.value;
    if (field.number == 2) track.name = std::string(field.bytes);
    if (field.number == 5) track.parent = field.value;
    if (field.number != 3 && field.number != 4) continue;
    const bool is_thread = field.number == 4;
    (is_thread ? track.has_thread : track.has_process) = true;
    ProtoReader inner(field.bytes);
    for (ProtoField part; inner.Next(&part);) {
      if (part.number == 1) track.pid = static_cast<int64_t>(part.value);
      if (is_thread && part.number == 2) {
        track.tid = static_cast<int64_t>(part.value);
      }
      if (is_thread && part.number == 5) thread_name = part.bytes;
      if (!is_thread && part.number == 6) process_name = part.bytes;
    }
  }
  if (track.has_process) EmitName("process_name", track.pid, 0, process_name);
  if (track.has_thread) {
    EmitName("thread_name", track.pid, track.tid, thread_name);
  }
  tracks_[uuid] = std::move(track);
}

void PerfettoTraceReader::EmitName(absl::string_view what, int64_t pid,
                                   int64_t tid, absl::string_view name) {
  Owned event;
  event.phase = 'M';
  event.name = std::string(what);
  event.pid = pid;
  event.tid = tid;
  JsonWriter json(&event.args);
  json.BeginObject().Key("name").String(name).EndObject();
  Emit(std::move(event));
}

void PerfettoTraceReader::SetPlace(uint64_t uuid, Owned* event) const {
  // A chain longer than this is a loop.
  for (int depth = 0; depth < 16; ++depth) {
    const auto found = tracks_.find(uuid);
    if (found == tracks_.end()) return;
    const Track& track = found->second;
    if (track.has_thread || track.has_process) {
      event->pid = track.pid;
      event->tid = track.has_thread ? track.tid : event->tid;
      return;
    }
    uuid = track.parent;
  }
}

void PerfettoTraceReader::ReadEvent(absl::string_view data, int64_t time_ns,
                                    const Sequence& sequence) {
  uint64_t type = 0, track = 0;
  Owned event;
  event.time_ns = time_ns;
  event.offset = buffer_.offset();
  JsonWriter args(&event.args);
  args.BeginObject();
  bool has_args = false;
  int64_t device = -1, stream = -1;
  std::string name;
  ProtoReader reader(data);
  for (ProtoField field; reader.Next(&field);) {
    switch (field.number) {
      case 3:
        event.category = std::string(Lookup(sequence.categories, field.value));
        break;
      case 22:
        event.category = std::string(field.bytes);
        break;
      case 9:
        type = field.value;
        break;
      case 10:
        name = std::string(Lookup(sequence.names, field.value));
        break;
      case 23:
        name = std::string(field.bytes);
        break;
      case 11:
        track = field.value;
        break;
      case 4: {
        ProtoReader annotation(field.bytes);
        absl::string_view key;
        ProtoField value;
        for (ProtoField part; annotation.Next(&part);) {
          if (part.number == 1) {
            key = Lookup(sequence.annotation_names, part.value);
          } else if (part.number == 10) {
            key = part.bytes;
          } else {
            value = part;
          }
        }
        if (key.empty() || value.number == 0) break;
        has_args = true;
        args.Key(key);
        switch (value.number) {
          case 2:
            args.Bool(value.value != 0);
            break;
          case 3:
            args.Uint(value.value);
            break;
          case 4:
            args.Int(static_cast<int64_t>(value.value));
            break;
          case 5:
            args.Double(std::bit_cast<double>(value.value));
            break;
          case 6:
            args.String(value.bytes);
            break;
          default:
            args.Null();
        }
        if (key == "device") device = static_cast<int64_t>(value.value);
        if (key == "stream") stream = static_cast<int64_t>(value.value);
        break;
      }
    }
  }
  args.EndObject();
  if (!has_args) event.args.clear();
  if (!reader.ok()) Note(TraceOddity::kMalformedEvent, buffer_.offset());
  // Names are kept as JSON text, so that both readers' events are alike.
  AppendJsonString(name, &event.name);
  event.name = event.name.substr(1, event.name.size() - 2);
  SetPlace(track, &event);
  const TraceEventKind kind = TraceEventKindOf(event.category);
  if ((IsGpuWork(kind) || kind == TraceEventKind::kGpuUserAnnotation) &&
      device >= 0) {
    event.pid = device;
    if (stream >= 0) event.tid = stream;
  }
  switch (type) {
    case 1:
      open_[track].push_back(std::move(event));
      break;
    case 2: {
      std::vector<Owned>& stack = open_[track];
      if (stack.empty()) {
        Note(TraceOddity::kMalformedEvent, buffer_.offset());
        break;
      }
      Owned begun = std::move(stack.back());
      stack.pop_back();
      begun.duration_ns = time_ns - begun.time_ns;
      Emit(std::move(begun));
      break;
    }
    case 3:
      event.phase = 'i';
      Emit(std::move(event));
      break;
  }
}

// Writes the event's JSON form, which splitting, merging and redacting copy.
void PerfettoTraceReader::Emit(Owned event) {
  std::string& raw = event.raw;
  absl::StrAppend(&raw, "{\"ph\": \"", absl::string_view(&event.phase, 1),
                  "\"");
  if (!event.category.empty()) {
    raw += ", \"cat\": ";
    AppendJsonString(event.category, &raw);
  }
  absl::StrAppend(&raw, ", \"name\": \"", event.name,
                  "\", \"pid\": ", event.pid, ", \"tid\": ", event.tid);
  if (event.phase != 'M') {
    absl::StrAppend(&raw, ", \"ts\": ", FormatMicroseconds(event.time_ns));
  }
  if (event.phase == 'X') {
    absl::StrAppend(&raw, ", \"dur\": ", FormatMicroseconds(event.duration_ns));
  }
  if (event.phase == 'i') raw += ", \"s\": \"t\"";
  if (!event.args.empty()) absl::StrAppend(&raw, ", \"args\": ", event.args);
  raw += "}";
  ready_.push_back(std::move(event));
}

}  // namespace firstframe
