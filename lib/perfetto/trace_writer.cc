#include "lib/perfetto/trace_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// Field numbers, by message.
namespace packet {
constexpr uint32_t kTracePacket = 1;  // in Trace
constexpr uint32_t kClockSnapshot = 6;
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kInternedData = 12;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kCompressedPackets = 50;
constexpr uint32_t kDefaults = 59;
constexpr uint32_t kTrackDescriptor = 60;
constexpr uint32_t kFirstOnSequence = 87;
}  // namespace packet

namespace track {
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kThread = 4;
constexpr uint32_t kParentUuid = 5;
constexpr uint32_t kCounter = 8;
constexpr uint32_t kChildOrdering = 11;
constexpr uint32_t kSiblingOrderRank = 12;
}  // namespace track

namespace event {
constexpr uint32_t kCategoryId = 3;
constexpr uint32_t kAnnotation = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kNameId = 10;
constexpr uint32_t kTrack = 11;
constexpr uint32_t kDoubleCounter = 44;
constexpr uint32_t kFlowId = 47;
}  // namespace event

namespace interned {
constexpr uint32_t kCategory = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kAnnotationName = 3;
}  // namespace interned

constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;
constexpr uint64_t kExplicitOrder = 3;

enum EventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounterValue = 4 };

}  // namespace

TraceWriter::TraceWriter(std::string* out, Options options)
    : options_(options),
      proto_(out),
      next_track_(uint64_t{options.sequence_id} << 32 | 1) {
  FF_CHECK(options.sequence_id != 0);
  proto_.Message(packet::kTracePacket, [&] {
    proto_.Varint(packet::kSequenceId, options_.sequence_id);
    proto_.Varint(packet::kSequenceFlags, kStateCleared);
    proto_.Varint(packet::kFirstOnSequence, 1);
    proto_.Message(packet::kDefaults, [&] {
      proto_.Varint(58, static_cast<uint64_t>(options_.clock));
    });
  });
  // Makes our clock the time axis: without it a viewer would have to convert to
  // BOOTTIME, for which it has no readings. A lone reading relates to nothing.
  const ClockReading reading = {options_.clock, 0};
  ClockSnapshot({&reading, 1});
}

TraceWriter::Interned TraceWriter::Intern(absl::string_view text,
                                          Table* table) {
  if (const auto found = table->find(text); found != table->end()) {
    return {.id = found->second};
  }
  const uint64_t id = table->size() + 1;
  table->emplace(text, id);
  return {.id = id, .is_new = true};
}

template <typename WriteFields>
void TraceWriter::Packet(int64_t time_ns, WriteFields&& write_fields) {
  proto_.Message(packet::kTracePacket, [&] {
    proto_.Varint(packet::kTimestamp, std::max<int64_t>(time_ns, 0));
    proto_.Varint(packet::kSequenceId, options_.sequence_id);
    proto_.Varint(packet::kSequenceFlags, kNeedsState);
    write_fields();
  });
}

template <typename WriteFields>
uint64_t TraceWriter::Descriptor(absl::string_view name, uint64_t parent,
                                 WriteFields&& write_fields) {
  const uint64_t uuid = NewTrack();
  proto_.Message(packet::kTracePacket, [&] {
    proto_.Varint(packet::kSequenceId, options_.sequence_id);
    proto_.Message(packet::kTrackDescriptor, [&] {
      proto_.Varint(track::kUuid, uuid);
      if (!name.empty()) proto_.Bytes(track::kName, ToValidUtf8(name));
      if (parent != 0) proto_.Varint(track::kParentUuid, parent);
      proto_.Varint(track::kChildOrdering, kExplicitOrder);
      proto_.Varint(track::kSiblingOrderRank, ++siblings_);
      write_fields();
    });
  });
  return uuid;
}

uint64_t TraceWriter::AddProcess(int64_t pid, absl::string_view name) {
  return Descriptor("", 0, [&] {
    proto_.Message(track::kProcess, [&] {
      proto_.Varint(1, pid);
      proto_.Bytes(6, ToValidUtf8(name));
    });
  });
}

uint64_t TraceWriter::AddThread(uint64_t process, int64_t pid, int64_t tid,
                                absl::string_view name) {
  return Descriptor("", process, [&] {
    proto_.Message(track::kThread, [&] {
      proto_.Varint(1, pid);
      proto_.Varint(2, tid);
      proto_.Bytes(5, ToValidUtf8(name));
    });
  });
}

uint64_t TraceWriter::AddTrack(absl::string_view name, uint64_t parent) {
  return Descriptor(name, parent, [] {});
}

uint64_t TraceWriter::AddCounter(absl::string_view name, uint64_t parent,
                                 absl::string_view unit) {
  return Descriptor(name, parent, [&] {
    proto_.Message(track::kCounter,
                   [&] { proto_.Bytes(6, ToValidUtf8(unit)); });
  });
}

void TraceWriter::WriteAnnotation(const TraceAnnotation& annotation,
                                  uint64_t name_id) {
  proto_.Message(event::kAnnotation, [&] {
    proto_.Varint(1, name_id);
    if (const auto* flag = std::get_if<bool>(&annotation.value)) {
      proto_.Varint(2, *flag);
    } else if (const auto* number = std::get_if<int64_t>(&annotation.value)) {
      proto_.Varint(4, *number);
    } else if (const auto* count = std::get_if<uint64_t>(&annotation.value)) {
      proto_.Varint(3, *count);
    } else if (const auto* real = std::get_if<double>(&annotation.value)) {
      proto_.Double(5, *real);
    } else {
      proto_.Bytes(6,
                   ToValidUtf8(std::get<absl::string_view>(annotation.value)));
    }
  });
}

void TraceWriter::NamedEvent(int type, uint64_t track, int64_t time_ns,
                             absl::string_view name,
                             const SliceDetails& details) {
  const Interned name_id = Intern(name, &names_);
  const Interned category_id = details.category.empty()
                                   ? Interned{}
                                   : Intern(details.category, &categories_);
  bool any_new = name_id.is_new || category_id.is_new;
  scratch_.clear();
  for (const TraceAnnotation& annotation : details.annotations) {
    scratch_.push_back(Intern(annotation.name, &annotation_names_));
    any_new |= scratch_.back().is_new;
  }
  const auto entry = [&](uint32_t field, const Interned& id,
                         absl::string_view text) {
    if (!id.is_new) return;
    proto_.Message(field, [&] {
      proto_.Varint(1, id.id);
      proto_.Bytes(2, ToValidUtf8(text));
    });
  };
  Packet(time_ns, [&] {
    if (any_new) {
      proto_.Message(packet::kInternedData, [&] {
        entry(interned::kName, name_id, name);
        entry(interned::kCategory, category_id, details.category);
        for (size_t i = 0; i < scratch_.size(); ++i) {
          entry(interned::kAnnotationName, scratch_[i],
                details.annotations[i].name);
        }
      });
    }
    proto_.Message(packet::kTrackEvent, [&] {
      if (category_id.id != 0)
        proto_.Varint(event::kCategoryId, category_id.id);
      for (size_t i = 0; i < scratch_.size(); ++i) {
        WriteAnnotation(details.annotations[i], scratch_[i].id);
      }
      proto_.Varint(event::kType, type);
      proto_.Varint(event::kNameId, name_id.id);
      proto_.Varint(event::kTrack, track);
      for (const uint64_t flow : details.flow_ids) {
        proto_.Fixed64(event::kFlowId, flow);
      }
    });
  });
}

void TraceWriter::BeginSlice(uint64_t track, int64_t time_ns,
                             absl::string_view name,
                             const SliceDetails& details) {
  NamedEvent(kBegin, track, time_ns, name, details);
}

void TraceWriter::EndSlice(uint64_t track, int64_t time_ns) {
  Packet(time_ns, [&] {
    proto_.Message(packet::kTrackEvent, [&] {
      proto_.Varint(event::kType, kEnd);
      proto_.Varint(event::kTrack, track);
    });
  });
}

void TraceWriter::Instant(uint64_t track, int64_t time_ns,
                          absl::string_view name, const SliceDetails& details) {
  NamedEvent(kInstant, track, time_ns, name, details);
}

void TraceWriter::Counter(uint64_t track, int64_t time_ns, double value) {
  Packet(time_ns, [&] {
    proto_.Message(packet::kTrackEvent, [&] {
      proto_.Varint(event::kType, kCounterValue);
      proto_.Varint(event::kTrack, track);
      proto_.Double(event::kDoubleCounter, value);
    });
  });
}

void TraceWriter::ClockSnapshot(absl::Span<const ClockReading> readings) {
  proto_.Message(packet::kTracePacket, [&] {
    proto_.Varint(packet::kSequenceId, options_.sequence_id);
    proto_.Message(packet::kClockSnapshot, [&] {
      for (const ClockReading& reading : readings) {
        proto_.Message(1, [&] {
          proto_.Varint(1, static_cast<uint64_t>(reading.clock));
          proto_.Varint(2, std::max<int64_t>(reading.time_ns, 0));
        });
      }
      proto_.Varint(2, static_cast<uint64_t>(options_.clock));
    });
  });
}

void AppendCompressedPackets(absl::string_view packets, std::string* out) {
  uLongf size = compressBound(packets.size());
  std::string deflated(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                               reinterpret_cast<const Bytef*>(packets.data()),
                               packets.size(), Z_DEFAULT_COMPRESSION);
  FF_CHECK(result == Z_OK);  // the buffer is large enough by construction
  ProtoWriter proto(out);
  proto.Message(packet::kTracePacket, [&] {
    proto.Bytes(packet::kCompressedPackets, {deflated.data(), size});
  });
}

}  // namespace firstframe
