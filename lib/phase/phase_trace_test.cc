#include "lib/phase/phase_trace.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/perfetto/perfetto_subset.pb.h"
#include "lib/phase/phase_test_report.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Plays the trace as a viewer does (by time, file order among equals) and
// returns each slice as "track: parent > name start+duration", in order of
// their ends.
std::vector<std::string> Play(const std::string& bytes) {
  perfetto_subset::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  std::map<uint64_t, std::string> names, tracks;
  std::multimap<uint64_t, const perfetto_subset::TracePacket*> by_time;
  for (const auto& packet : trace.packet()) {
    for (const auto& name : packet.interned_data().event_names()) {
      names[name.iid()] = name.name();
    }
    if (packet.has_track_descriptor()) {
      const auto& track = packet.track_descriptor();
      tracks[track.uuid()] =
          track.has_thread() ? track.thread().thread_name() : track.name();
    }
    if (packet.has_track_event()) by_time.emplace(packet.timestamp(), &packet);
  }
  struct Open {
    std::string name;
    uint64_t start;
  };
  std::map<uint64_t, std::vector<Open>> open;
  std::vector<std::string> slices;
  for (const auto& [time, packet] : by_time) {
    const auto& event = packet->track_event();
    std::vector<Open>& stack = open[event.track_uuid()];
    if (event.type() == 1) {
      stack.push_back({names[event.name_iid()], time});
      continue;
    }
    EXPECT_FALSE(stack.empty());
    const Open slice = stack.back();
    stack.pop_back();
    slices.push_back(absl::StrCat(
        tracks[event.track_uuid()], ": ",
        stack.empty() ? "" : absl::StrCat(stack.back().name, " > "), slice.name,
        " ", slice.start, "+", time - slice.start));
  }
  for (const auto& [track, stack] : open) EXPECT_TRUE(stack.empty());
  return slices;
}

TEST(PhaseTrace, SlicesNestAsThePhasesDo) {
  std::string bytes;
  WritePhaseTrace(MakePhaseTestReport(), "vae_startup", &bytes);
  EXPECT_THAT(Play(bytes),
              UnorderedElementsAre(
                  "main: process.exec 0+4000000",
                  "main: component.vae > vae.construct 20000000+10000000",
                  "main: component.vae > vae.checkpoint_read 31000000+20000000",
                  "reader 1: shard \xE8\xA7\xA3 31000000+19000000",
                  "main: component.vae > vae.finalize 60000000+0",
                  "main: component.vae 20000000+40000000",
                  "main: first_decode 60000000+40000000"));
}

TEST(PhaseTrace, OverlapGetsATrackOfItsOwn) {
  const PhaseReport report = {
      .recording_duration_ns = 40,
      .lanes = {{.name = "main", .pid = 1, .tid = 1}},
      .phases = {
          {.id = 0, .name = "a", .start_offset_ns = -5, .duration_ns = 15},
          {.id = 1, .name = "b", .start_offset_ns = 5, .duration_ns = 20},
          {.id = 2, .name = "c", .start_offset_ns = 30, .duration_ns = 1}}};
  std::string bytes;
  WritePhaseTrace(report, "x", &bytes);
  EXPECT_THAT(Play(bytes), ElementsAre("main: a 0+15", "overlap 1: b 10+20",
                                       "main: c 35+1"));
}

TEST(PhaseTrace, FailuresAndAttributesAreAnnotations) {
  std::string bytes;
  WritePhaseTrace(MakePhaseTestReport(), "vae_startup", &bytes);
  perfetto_subset::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(bytes));
  int errors = 0, pids = 0;
  for (const auto& packet : trace.packet()) {
    pids += packet.track_descriptor().has_process();
    for (const auto& value : packet.track_event().debug_annotations()) {
      if (value.string_value().find("\"short\" read") != std::string::npos) {
        ++errors;
        EXPECT_EQ(packet.track_event().debug_annotations_size(), 4);
      }
    }
  }
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(pids, 1);
}

TEST(PhaseTrace, AnEmptyReportIsATrace) {
  std::string bytes;
  WritePhaseTrace({}, "x", &bytes);
  EXPECT_TRUE(Play(bytes).empty());
}

}  // namespace
}  // namespace firstframe
