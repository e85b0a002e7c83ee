#include "lib/perfetto/trace_writer.h"

#include <zlib.h>

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/perfetto/perfetto_subset.pb.h"

namespace firstframe {
namespace {

using perfetto_subset::Trace;
using perfetto_subset::TracePacket;
using ::testing::ElementsAre;

Trace Decode(const std::string& bytes) {
  Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  return trace;
}

// Resolves interned names as a viewer does: in file order.
std::vector<std::string> EventNames(const Trace& trace) {
  std::map<uint64_t, std::string> names;
  std::vector<std::string> result;
  for (const TracePacket& packet : trace.packet()) {
    for (const auto& entry : packet.interned_data().event_names()) {
      EXPECT_TRUE(names.emplace(entry.iid(), entry.name()).second);
    }
    if (packet.track_event().has_name_iid()) {
      result.push_back(names.at(packet.track_event().name_iid()));
    }
  }
  return result;
}

TEST(TraceWriter, StartsItsSequenceAndNamesItsClock) {
  std::string bytes;
  TraceWriter trace(&bytes, {.sequence_id = 7, .clock = TraceClock::kRealtime});
  const Trace decoded = Decode(bytes);
  ASSERT_EQ(decoded.packet_size(), 2);
  EXPECT_EQ(decoded.packet(0).trusted_packet_sequence_id(), 7u);
  EXPECT_EQ(decoded.packet(0).sequence_flags(), 1u);
  EXPECT_TRUE(decoded.packet(0).first_packet_on_sequence());
  EXPECT_EQ(decoded.packet(0).trace_packet_defaults().timestamp_clock_id(), 1u);
  EXPECT_EQ(decoded.packet(1).clock_snapshot().primary_trace_clock(), 1u);
}

TEST(TraceWriter, DescribesTracks) {
  std::string bytes;
  TraceWriter trace(&bytes);
  const uint64_t process = trace.AddProcess(12, "vae_startup");
  const uint64_t thread = trace.AddThread(process, 12, 13, "main");
  const uint64_t track = trace.AddTrack("stream 7", thread);
  trace.AddCounter("read", process, "bytes");
  const Trace decoded = Decode(bytes);
  ASSERT_EQ(decoded.packet_size(), 6);
  const auto descriptor = [&](int i) {
    return decoded.packet(2 + i).track_descriptor();
  };
  EXPECT_EQ(descriptor(0).uuid(), process);
  EXPECT_EQ(descriptor(0).process().pid(), 12);
  EXPECT_EQ(descriptor(0).process().process_name(), "vae_startup");
  EXPECT_EQ(descriptor(1).parent_uuid(), process);
  EXPECT_EQ(descriptor(1).thread().tid(), 13);
  EXPECT_EQ(descriptor(1).thread().thread_name(), "main");
  EXPECT_EQ(descriptor(2).uuid(), track);
  EXPECT_EQ(descriptor(2).parent_uuid(), thread);
  EXPECT_EQ(descriptor(2).name(), "stream 7");
  EXPECT_EQ(descriptor(3).counter().unit_name(), "bytes");
  for (int i = 1; i < 4; ++i) {
    EXPECT_GT(descriptor(i).sibling_order_rank(),
              descriptor(i - 1).sibling_order_rank());
  }
}

TEST(TraceWriter, StoresEachNameOnceAndKeepsTimes) {
  std::string bytes;
  TraceWriter trace(&bytes);
  const uint64_t track = trace.AddTrack("phases", 0);
  trace.BeginSlice(track, 5, "load");
  trace.BeginSlice(track, 6, "read");
  trace.EndSlice(track, 7);
  trace.BeginSlice(track, 8, "read");
  trace.EndSlice(track, 9);
  trace.EndSlice(track, -3);
  const Trace decoded = Decode(bytes);
  EXPECT_THAT(EventNames(decoded), ElementsAre("load", "read", "read"));
  std::vector<uint64_t> times, types;
  for (const TracePacket& packet : decoded.packet()) {
    if (!packet.has_track_event()) continue;
    EXPECT_EQ(packet.track_event().track_uuid(), track);
    EXPECT_EQ(packet.sequence_flags(), 2u);
    times.push_back(packet.timestamp());
    types.push_back(packet.track_event().type());
  }
  EXPECT_THAT(times, ElementsAre(5, 6, 7, 8, 9, 0));
  EXPECT_THAT(types, ElementsAre(1, 1, 2, 1, 2, 2));
}

TEST(TraceWriter, WritesEveryKindOfAnnotation) {
  std::string bytes;
  TraceWriter trace(&bytes);
  const std::vector<TraceAnnotation> annotations = {
      {"flag", true},
      {"delta", int64_t{-4}},
      {"bytes", uint64_t{1} << 63},
      {"rate", 2.5},
      {"error", absl::string_view("no \xFF file")}};
  const std::vector<uint64_t> flows = {42};
  trace.Instant(
      1, 2, "x",
      {.category = "io", .annotations = annotations, .flow_ids = flows});
  const Trace decoded = Decode(bytes);
  const TracePacket& packet = decoded.packet(2);
  ASSERT_EQ(packet.interned_data().debug_annotation_names_size(), 5);
  EXPECT_EQ(packet.interned_data().event_categories(0).name(), "io");
  EXPECT_EQ(packet.track_event().category_iids(0), 1u);
  EXPECT_EQ(packet.track_event().flow_ids(0), 42u);
  const auto& written = packet.track_event().debug_annotations();
  EXPECT_TRUE(written[0].bool_value());
  EXPECT_EQ(written[1].int_value(), -4);
  EXPECT_EQ(written[2].uint_value(), uint64_t{1} << 63);
  EXPECT_EQ(written[3].double_value(), 2.5);
  EXPECT_EQ(written[4].string_value(), "no \xEF\xBF\xBD file");
}

TEST(TraceWriter, WidensTheLengthOfLongMessages) {
  for (const size_t size : {0, 100, 120, 126, 127, 128, 129, 16383, 70000}) {
    std::string bytes;
    TraceWriter trace(&bytes);
    trace.BeginSlice(1, 1, std::string(size, 'n'));
    trace.EndSlice(1, 2);
    const Trace decoded = Decode(bytes);
    ASSERT_EQ(decoded.packet_size(), 4) << size;
    EXPECT_EQ(EventNames(decoded).at(0).size(), size);
  }
}

TEST(TraceWriter, AnyPrefixOfWholePacketsIsATrace) {
  std::string bytes;
  TraceWriter trace(&bytes);
  std::string file;
  for (int i = 0; i < 4; ++i) {
    trace.Counter(1, i, 0.5 * i);
    file += bytes;
    bytes.clear();
    const Trace decoded = Decode(file);
    ASSERT_EQ(decoded.packet_size(), 3 + i);
    EXPECT_EQ(decoded.packet(2 + i).track_event().double_counter_value(),
              0.5 * i);
  }
}

TEST(TraceWriter, CompressedPacketsInflateToTheSameBytes) {
  std::string bytes;
  TraceWriter trace(&bytes);
  for (int i = 0; i < 1000; ++i) trace.Instant(1, i, "tick");
  std::string file;
  AppendCompressedPackets(bytes, &file);
  EXPECT_LT(file.size(), bytes.size() / 2);
  const Trace decoded = Decode(file);
  ASSERT_EQ(decoded.packet_size(), 1);
  const std::string& deflated = decoded.packet(0).compressed_packets();
  std::string inflated(bytes.size() + 1, '\0');
  uLongf size = inflated.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(inflated.data()), &size,
                       reinterpret_cast<const Bytef*>(deflated.data()),
                       deflated.size()),
            Z_OK);
  inflated.resize(size);
  EXPECT_TRUE(inflated == bytes);
}

}  // namespace
}  // namespace firstframe
