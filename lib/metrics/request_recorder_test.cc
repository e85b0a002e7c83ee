#include "lib/metrics/request_recorder.h"

#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/fake_clock.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeClock;
using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeMemory : public MemoryProbe {
 public:
  void ResetPeak() override { ++resets; }
  std::optional<MemoryPeaks> Peaks() override {
    return MemoryPeaks{int64_t{3} << 29, int64_t{1} << 31};
  }
  int resets = 0;
};

std::vector<std::string> Keys(simdjson::dom::element object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.get_object()) keys.emplace_back(key);
  return keys;
}

class RequestRecorderTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(internal::current_request, nullptr); }

  void Step(const char* name, int64_t ms) {
    StageScope stage(name);
    stage.SetShape(1560, 2);
    clock_.Advance(ms * 1'000'000);
  }

  FakeClock clock_;
  std::ostringstream log_;
  TempDir dir_;
};

TEST_F(RequestRecorderTest, WritesTheRecordAndTheLines) {
  PerfSettings settings{.level = 2, .json_path = dir_.File("a/b/perf.jsonl")};
  settings.warmup = 1;
  PerfSink sink(settings, &log_);
  MarkerSource markers(clock_);
  RequestRecorder recorder(sink, markers, nullptr, [] { return 17.5; });
  recorder.SetTransformer(
      "transformer", {.params = 1'000'000'000, .widths = {46080, 46080, 60}});
  recorder.SetPeakTflops(100);
  for (int request = 0; request < 3; ++request) {
    RequestScope scope(recorder);
    Step("text_encoder", 40);
    Step("transformer", 100);
    Step("transformer", 300);
    clock_.Advance(60'000'000);
  }
  recorder.ReportSummary();
  recorder.ReportSummary();
  std::vector<std::string> lines;
  std::istringstream stream(log_.str());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  // 2 * 1e9 * 1560 + 4 * 1560^2 * 46080 a sample, two samples, 0.2 s a forward.
  const std::string tail =
      " | e2e 0.50s | text_encoder 0.04s(1x) | transformer 0.40s(2x, "
      "200+-141ms, min 100 max 300) | DiT 7.14e+12 FLOPs/fwd (attn 13%) -> "
      "35.7 TFLOPS (MFU 35.7% @100)";
  EXPECT_THAT(lines,
              ElementsAre("[Perf][rank0] req#0 warmup" + tail,
                          "[Perf][rank0]   text_encoder steps(ms): 40.0",
                          "[Perf][rank0]   transformer steps(ms): 100.0, 300.0",
                          "[Perf][rank0] req#1" + tail,
                          "[Perf][rank0]   text_encoder steps(ms): 40.0",
                          "[Perf][rank0]   transformer steps(ms): 100.0, 300.0",
                          "[Perf][rank0] req#2" + tail,
                          "[Perf][rank0]   text_encoder steps(ms): 40.0",
                          "[Perf][rank0]   transformer steps(ms): 100.0, 300.0",
                          "[Perf][rank0] === 2 reqs (1 warmup excluded) | e2e "
                          "p50 0.5s p95 0.5s | transformer mean 200ms/step | "
                          "7200.0 reqs/hour ==="));
  std::istringstream records(ReadFile(dir_.File("a/b/perf.jsonl")));
  std::string line;
  ASSERT_TRUE(std::getline(records, line));
  simdjson::dom::parser parser;
  const simdjson::dom::element record = parser.parse(line);
  EXPECT_THAT(Keys(record),
              ElementsAre("kind", "ts", "rank", "world_size", "req", "warmup",
                          "e2e_s", "stages", "dit"));
  EXPECT_THAT(Keys(record["stages"]["transformer"]),
              ElementsAre("count", "total_ms", "mean_ms", "std_ms", "min_ms",
                          "max_ms"));
  EXPECT_THAT(
      Keys(record["dit"]),
      ElementsAre("params", "tokens", "batch", "devices", "flops_per_fwd",
                  "attn_share", "tflops", "peak_tflops", "mfu"));
  EXPECT_EQ(double{record["ts"]}, 17.5);
}

TEST_F(RequestRecorderTest, NestedScopesBelongToTheOuterRequest) {
  PerfSink sink(PerfSettings{.level = 1}, &log_);
  MarkerSource markers(clock_);
  RequestRecorder recorder(sink, markers);
  {
    RequestScope outer(recorder);
    Step("vae_dec", 10);
    {
      RequestScope inner(recorder);
      Step("vae_dec", 20);
    }
    StageScope chunked("vae_dec");  // re-entrant
    clock_.Advance(5'000'000);
    Step("vae_dec", 1);
  }
  EXPECT_EQ(recorder.num_requests(), 1);
  EXPECT_THAT(log_.str(), HasSubstr("vae_dec 0.04s(4x, 9+-8ms, min 1 max 20)"));
}

TEST_F(RequestRecorderTest, AnExceptionReleasesTheThread) {
  PerfSink sink(PerfSettings{.level = 1}, &log_);
  MarkerSource markers(clock_);
  RequestRecorder recorder(sink, markers);
  try {
    RequestScope scope(recorder);
    StageScope stage("transformer");
    clock_.Advance(7'000'000'000);
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  EXPECT_THAT(log_.str(), HasSubstr("req#0 | e2e 7.00s | transformer 7.00s"));
  Step("transformer", 5);  // outside of any request: not measured
  EXPECT_EQ(internal::current_request, nullptr);
}

TEST_F(RequestRecorderTest, SynchronisesOnceBeforeTheClockIsRead) {
  FakeCuda cuda;
  ASSERT_THAT(cuda.SetDevice(0), IsOk());
  const cuda::StreamHandle stream = *cuda.CreateStream(0);
  FakeMemory memory;
  PerfSink sink(PerfSettings{.level = 1, .json_path = dir_.File("p")}, &log_);
  MarkerSource markers(clock_, {&cuda, 0, stream});
  RequestRecorder recorder(sink, markers, &memory);
  {
    RequestScope scope(recorder);
    StageScope stage("transformer");
    clock_.Advance(1'000'000);    // submission
    cuda.AdvanceNs(250'000'000);  // the work itself
  }
  EXPECT_EQ(cuda.calls("SynchronizeStream"), 1);
  EXPECT_THAT(log_.str(), HasSubstr("transformer 0.25s(1x)"));
  EXPECT_THAT(log_.str(), HasSubstr("peak_alloc 1.5GiB peak_reserved 2.0GiB"));
  EXPECT_EQ(memory.resets, 1);
  EXPECT_THAT(ReadFile(dir_.File("p")), HasSubstr("\"device\":\"cuda:0\""));
  EXPECT_THAT(cuda.DestroyStream(stream), IsOk());
}

TEST_F(RequestRecorderTest, ConcurrentRequestsDoNotMix) {
  std::ostringstream log;
  PerfSink sink(PerfSettings{.level = 1}, &log);
  MarkerSource markers;
  RequestRecorder recorder(sink, markers);
  const auto serve = [&](const char* name) {
    for (int i = 0; i < 50; ++i) {
      RequestScope scope(recorder);
      for (int step = 0; step < 4; ++step) StageScope stage(name);
    }
  };
  std::thread other(serve, "unet");
  serve("transformer");
  other.join();
  EXPECT_EQ(recorder.num_requests(), 100);
  std::istringstream stream(log.str());
  int lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) {
    EXPECT_NE(line.find("unet") == std::string::npos,
              line.find("transformer") == std::string::npos)
        << line;
    EXPECT_THAT(line, HasSubstr("(4x"));
  }
  EXPECT_EQ(lines, 100);
}

TEST_F(RequestRecorderTest, FailuresAreSaidOnceAndBreakNothing) {
  PerfSink sink(PerfSettings{.level = 1, .json_path = "/dev/null/no/perf"},
                &log_);
  MarkerSource markers(clock_);
  RequestRecorder recorder(sink, markers);
  for (int i = 0; i < 3; ++i) RequestScope scope(recorder);
  const std::string log = log_.str();
  EXPECT_EQ(log.find("failed to report"), log.rfind("failed to report"));
  EXPECT_THAT(log, HasSubstr("failed to report metrics: cannot open "));
  EXPECT_THAT(log, HasSubstr("req#2"));
}

TEST_F(RequestRecorderTest, SettingsOverrideModelAndPeak) {
  PerfSettings settings{.level = 1, .json_path = dir_.File("p")};
  settings.dit_params = 500;
  settings.price_attention = false;
  settings.peak_tflops = 2;
  settings.world_size = 4;
  PerfSink sink(settings, &log_);
  MarkerSource markers(clock_);
  RequestRecorder recorder(sink, markers);
  recorder.SetTransformer("transformer", {.params = 7, .widths = {9, 9, 9}});
  recorder.SetVae("vae_dec", 4e12);
  recorder.SetPeakTflops(1000);
  {
    RequestScope scope(recorder);
    Step("transformer", 1);
    Step("vae_dec", 2000);
  }
  // 2 * 500 * 1560 * 2 operations in 1 ms against 4 devices of 2 TFLOPS.
  simdjson::dom::parser parser;
  const std::string text = ReadFile(dir_.File("p.rank0"));
  const simdjson::dom::element record = parser.parse(text);
  EXPECT_EQ(double{record["dit"]["flops_per_fwd"]}, 3120000.0);
  EXPECT_EQ(double{record["dit"]["attn_share"]}, 0.0);
  EXPECT_EQ(double{record["dit"]["peak_tflops"]}, 8.0);
  EXPECT_EQ(double{record["vae"]["tflops"]}, 2.0);
  EXPECT_EQ(double{record["vae"]["mfu"]}, 0.25);
  EXPECT_THAT(log_.str(), HasSubstr("over 4 GPUs"));
}

}  // namespace
}  // namespace firstframe
