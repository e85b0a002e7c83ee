// Phases, regions and spans.

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/firstframe.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

std::string Take(char* text) {
  const std::string copy = text == nullptr ? "" : text;
  ff_free(text);
  return copy;
}

TEST(Phases, ScopesEndInnermostFirstOnTheirThread) {
  ff_phase_recorder* recorder = nullptr;
  ASSERT_EQ(ff_phase_recorder_create(nullptr, nullptr, &recorder), FF_OK);
  ff_phase_collector* collector = nullptr;
  ASSERT_EQ(ff_phase_collector_open(recorder, "main", &collector), FF_OK);
  ff_phase* outer = nullptr;
  ff_phase* inner = nullptr;
  ASSERT_EQ(ff_phase_begin("outer", &outer), FF_OK);
  ASSERT_EQ(ff_phase_begin("inner", &inner), FF_OK);

  EXPECT_EQ(ff_phase_end(outer, nullptr), FF_FAILED_PRECONDITION);
  EXPECT_THAT(ff_last_error(), HasSubstr("not the innermost"));
  EXPECT_EQ(ff_phase_collector_close(collector), FF_FAILED_PRECONDITION);
  EXPECT_EQ(ff_phase_recorder_destroy(recorder), FF_FAILED_PRECONDITION);
  std::thread([&] {
    EXPECT_EQ(ff_phase_end(inner, nullptr), FF_FAILED_PRECONDITION);
    EXPECT_EQ(ff_phase_set_int(inner, "bytes", 1), FF_FAILED_PRECONDITION);
    ff_phase* elsewhere = outer;
    EXPECT_EQ(ff_phase_begin("elsewhere", &elsewhere), FF_OK);
    EXPECT_EQ(elsewhere, nullptr);  // nothing collects on this thread
  }).join();

  EXPECT_EQ(ff_phase_set_int(inner, "read_bytes", 512), FF_OK);
  EXPECT_EQ(ff_phase_end(inner, "disk on fire"), FF_OK);
  EXPECT_EQ(ff_phase_end(inner, nullptr), FF_FAILED_PRECONDITION);  // twice
  EXPECT_EQ(ff_phase_end(outer, nullptr), FF_OK);
  EXPECT_EQ(ff_phase_collector_close(collector), FF_OK);

  char* json = nullptr;
  ASSERT_EQ(ff_phase_recorder_json(recorder, &json), FF_OK);
  const std::string report = Take(json);
  EXPECT_THAT(report, HasSubstr("\"name\":\"inner\""));
  EXPECT_THAT(report, HasSubstr("disk on fire"));
  EXPECT_THAT(report, HasSubstr("\"read_bytes\":512"));
  EXPECT_EQ(ff_phase_recorder_destroy(recorder), FF_OK);
}

TEST(Phases, OfThreadsDoNotMeet) {
  constexpr int kThreads = 4;
  constexpr int kPhases = 500;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&failures, t] {
      const auto expect = [&](ff_status status) {
        if (status != FF_OK) ++failures;
      };
      const std::string name = "of " + std::to_string(t);
      ff_phase_recorder* recorder = nullptr;
      ff_phase_collector* collector = nullptr;
      expect(ff_phase_recorder_create(nullptr, nullptr, &recorder));
      expect(ff_phase_collector_open(recorder, "main", &collector));
      for (int i = 0; i < kPhases; ++i) {
        ff_phase* phase = nullptr;
        expect(ff_phase_begin(name.c_str(), &phase));
        expect(ff_phase_end(phase, nullptr));
        // A failure's message is this thread's own.
        if (ff_phase_begin(nullptr, &phase) != FF_INVALID_ARGUMENT ||
            std::strstr(ff_last_error(), "NULL") == nullptr) {
          ++failures;
        }
      }
      expect(ff_phase_collector_close(collector));
      char* json = nullptr;
      expect(ff_phase_recorder_json(recorder, &json));
      const std::string report = Take(json);
      int found = 0;
      for (size_t at = report.find(name); at != std::string::npos;
           at = report.find(name, at + 1)) {
        ++found;
      }
      if (found != kPhases) ++failures;
      expect(ff_phase_recorder_destroy(recorder));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

std::string profile_dir;

TEST(Regions, GoToATraceInTheFolderAskedFor) {
  const testing::TempDir dir;
  ff_region* region = nullptr;
  ASSERT_EQ(ff_region_begin("training_step", &region), FF_OK);
  EXPECT_EQ(region, nullptr);  // no profiler
  int32_t is_on = 1;
  char* messages = nullptr;
  ASSERT_EQ(
      ff_profiler_start([](const char*) -> const char* { return nullptr; },
                        &is_on, &messages),
      FF_OK);
  EXPECT_EQ(is_on, 0);
  ff_free(messages);

  profile_dir = dir.path();
  const auto get = [](const char* name) -> const char* {
    if (std::strcmp(name, "FASTVIDEO_TORCH_PROFILER_DIR") == 0) {
      return profile_dir.c_str();
    }
    if (std::strcmp(name, "FASTVIDEO_TORCH_PROFILE_REGIONS") == 0) {
      return "profiler_region_training_step,training_stop";
    }
    return nullptr;
  };
  ASSERT_EQ(ff_profiler_start(get, &is_on, &messages), FF_OK)
      << ff_last_error();
  EXPECT_EQ(is_on, 1);
  EXPECT_THAT(Take(messages), HasSubstr("training_stop"));
  ASSERT_EQ(ff_region_begin("profiler_region_training_step", &region), FF_OK);
  ff_region* inner = nullptr;
  ASSERT_EQ(ff_region_begin("training_backward", &inner), FF_OK);
  ff_span* span = nullptr;
  ASSERT_EQ(ff_span_begin("upload \"x\"", &span), FF_OK);
  EXPECT_EQ(ff_region_end(inner), FF_FAILED_PRECONDITION);
  EXPECT_EQ(ff_span_end(span), FF_OK);
  EXPECT_EQ(ff_span_end(span), FF_FAILED_PRECONDITION);  // twice
  EXPECT_EQ(ff_region_end(region), FF_FAILED_PRECONDITION);
  EXPECT_EQ(ff_region_end(inner), FF_OK);
  EXPECT_EQ(ff_region_end(region), FF_OK);
  ASSERT_EQ(ff_profiler_stop(&messages), FF_OK);
  const std::string said = Take(messages);
  EXPECT_THAT(said, HasSubstr(dir.path()));
  ASSERT_EQ(ff_span_begin("late", &span), FF_OK);
  EXPECT_EQ(span, nullptr);
  const size_t at = said.find("trace written to ");
  ASSERT_NE(at, std::string::npos) << said;
  const size_t from = at + std::strlen("trace written to ");
  const std::string trace =
      testing::ReadFile(said.substr(from, said.find('\n', from) - from));
  EXPECT_FALSE(trace.empty());
}

}  // namespace
}  // namespace firstframe
