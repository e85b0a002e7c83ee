#include "lib/profiler/trace_stream.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/profiler/trace_finalize.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_validate.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::TempDir;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

cupti::ApiRecord Launch(uint32_t correlation, uint64_t start) {
  cupti::ApiRecord record = {};
  record.kind = cupti::kRuntime;
  record.start = start;
  record.end = start + 5000;
  record.thread_id = 77;
  record.correlation_id = correlation;
  return record;
}

cupti::KernelRecord Kernel(const char* name, uint32_t correlation,
                           uint64_t start, uint64_t end) {
  cupti::KernelRecord record = {};
  record.kind = cupti::kConcurrentKernel;
  record.name = name;
  record.correlation_id = correlation;
  record.start = start;
  record.end = end;
  record.stream_id = 7;
  record.context_id = 1;
  record.grid[0] = 4;
  record.grid[1] = record.grid[2] = 1;
  record.block[0] = 256;
  record.block[1] = record.block[2] = 1;
  return record;
}

// A session of one region from 1 ms to 2 ms: work launched in it runs later,
// work launched outside runs at the same time.
std::unique_ptr<TraceStream> Record(const std::string& path, RegionClock* clock,
                                    const TraceStreamOptions& options) {
  auto stream = TraceStream::Create(path, options, clock);
  EXPECT_THAT(stream, IsOk());
  clock->Open(1'000'000, 5, 77);
  clock->Close(2'000'000, 5);
  TraceStream& s = **stream;
  s.OnKernel(Kernel("_Z3outv", 1, 1'100'000, 1'200'000));  // before its launch
  s.OnApi(Launch(1, 900'000), "cudaLaunchKernel", false);
  s.OnApi(Launch(2, 1'500'000), "cudaLaunchKernel", false);
  s.OnKernel(Kernel("_Z2inv", 2, 2'500'000, 2'600'000));
  s.OnKernel(Kernel("_Z4waitv", 3, 2'550'000, 2'700'000));  // overlaps
  s.OnApi(Launch(3, 1'600'000), "cudaLaunchKernel", false);
  cupti::MemcpyRecord copy = {};
  copy.kind = cupti::kMemcpy;
  copy.copy_kind = 1;
  copy.src_kind = 2;
  copy.dst_kind = 3;
  copy.bytes = 4096;
  copy.correlation_id = 2;
  copy.start = 2'800'000;
  copy.end = 2'900'000;
  copy.stream_id = 7;
  s.OnMemcpy(copy);
  s.OnKernel(Kernel("_Z7unknownv", 99, 1'000'000, 1'100'000));
  s.OnKernel(Kernel("_Z5abortv", 2, 2'500'000, 0));  // CUPTI gave up on it
  s.Span(77, 1'000'000, 2'000'000, "fastvideo.region::inference_denoising", 5);
  EXPECT_THAT(s.Flush(true), IsOk());
  return *std::move(stream);
}

TEST(TraceStream, KeepsWhatWasLaunchedInsideRegions) {
  const TempDir dir;
  RegionClock clock;
  const auto stream = Record(dir.File("s.pftrace"), &clock,
                             {.pid = 42, .process_name = "prog"});
  const TraceStreamCounts counts = stream->counts();
  EXPECT_EQ(counts.kernel_count, 2);
  EXPECT_EQ(counts.copy_count, 1);
  EXPECT_EQ(counts.api_count, 2);
  EXPECT_EQ(counts.outside_count, 4)
      << "a launch, its kernel, a kernel without a launch, an aborted one";
  ASSERT_OK_AND_ASSIGN(auto reader, TraceReader::Open(stream->path()));
  EXPECT_EQ(reader->info().has_base_time, false) << "not read yet";
  ASSERT_OK_AND_ASSIGN(const TraceSummary summary, AnalyzeTrace(*reader, {}));
  EXPECT_TRUE(summary.file.has_base_time);
  ASSERT_THAT(summary.regions, SizeIs(1));
  EXPECT_EQ(summary.regions[0].gpu_event_count, 3);
  EXPECT_EQ(summary.regions[0].kernel_ns, 250'000);
  EXPECT_EQ(summary.regions[0].copy_ns, 100'000);
  EXPECT_EQ(summary.gpu_outside_regions, 0);
  ASSERT_THAT(summary.work, SizeIs(3));
  EXPECT_EQ(summary.work[0].name, "wait()");
  EXPECT_EQ(summary.work[2].name, "in()");
}

// A launch on a thread without regions belongs to the one open elsewhere; one
// whose thread had pushed a number belongs to that, whatever the clocks say.
TEST(TraceStream, LaunchesKnowTheirRegionAcrossThreads) {
  const TempDir dir;
  RegionClock clock;
  auto stream = TraceStream::Create(dir.File("s.pftrace"), {.pid = 42}, &clock);
  ASSERT_THAT(stream, IsOk());
  clock.Open(1'000'000, 5, 77);
  clock.Open(1'100'000, 6, 78);
  clock.Close(2'000'000, 5);
  clock.Close(2'000'000, 6);
  const auto launch = [&](uint32_t correlation, uint64_t time, uint32_t tid) {
    cupti::ApiRecord record = Launch(correlation, time);
    record.thread_id = tid;
    (*stream)->OnApi(record, "cudaLaunchKernel", false);
    (*stream)->OnKernel(Kernel("k", correlation, 3'000'000 + correlation * 1000,
                               3'000'500 + correlation * 1000));
  };
  launch(1, 1'500'000, 77);
  launch(2, 1'500'000, 78);
  launch(3, 1'500'000, 99);  // autograd's thread
  cupti::ExternalRecord pushed = {};
  pushed.external_kind = cupti::kExternalOurs;
  pushed.external_id = 5;
  pushed.correlation_id = 4;
  (*stream)->OnExternal(pushed);
  launch(4, 999'990, 77);
  launch(5, 999'990, 77);  // nothing pushed: outside
  ASSERT_THAT((*stream)->Flush(true), IsOk());
  ASSERT_OK_AND_ASSIGN(auto reader, TraceReader::Open((*stream)->path()));
  std::vector<std::string> regions;
  for (TraceEvent event; *reader->Next(&event);) {
    if (event.kind != TraceEventKind::kKernel) continue;
    regions.emplace_back(FindJsonValue(event.args, "External id"));
  }
  EXPECT_THAT(regions, ElementsAre("5", "6", "6", "5"));
}

TEST(TraceStream, WithoutAnyLaunchItGoesByTime) {
  const TempDir dir;
  RegionClock clock;
  auto stream = TraceStream::Create(dir.File("s.pftrace"), {.pid = 42}, &clock);
  ASSERT_THAT(stream, IsOk());
  clock.Open(1'000'000, 5, 77);
  clock.Close(2'000'000, 5);
  (*stream)->OnKernel(Kernel("_Z2inv", 1, 1'500'000, 1'600'000));
  (*stream)->OnKernel(Kernel("_Z3outv", 2, 2'500'000, 2'600'000));
  ASSERT_THAT((*stream)->Flush(true), IsOk());
  EXPECT_EQ((*stream)->counts().by_time_count, 1);
  EXPECT_EQ((*stream)->counts().kernel_count, 1);
  EXPECT_EQ((*stream)->counts().outside_count, 1);
}

TEST(TraceStream, KeepsAllWhenAsked) {
  const TempDir dir;
  RegionClock clock;
  const auto stream =
      Record(dir.File("s.pftrace"), &clock, {.pid = 42, .keep_all = true});
  EXPECT_EQ(stream->counts().kernel_count, 4);
  EXPECT_EQ(stream->counts().api_count, 3);
}

TEST(TraceStream, StopsAtItsBudget) {
  const TempDir dir;
  RegionClock clock;
  const auto stream =
      Record(dir.File("s.pftrace"), &clock, {.pid = 42, .max_bytes = 1});
  EXPECT_EQ(stream->counts().kernel_count, 0);
  EXPECT_GT(stream->counts().over_budget_count, 0);
}

TEST(TraceStream, EveryPrefixOfTheFileIsATrace) {
  const TempDir dir;
  RegionClock clock;
  const auto stream = Record(dir.File("s.pftrace"), &clock, {.pid = 42});
  const std::string bytes = ReadFile(stream->path());
  int64_t last = 0;
  for (size_t n = 1; n <= bytes.size(); ++n) {
    auto reader = TraceReader::Open(dir.Write("p.pftrace", bytes.substr(0, n)));
    if (!reader.ok()) continue;
    for (TraceEvent event; *(*reader)->Next(&event);) {
    }
    EXPECT_GE((*reader)->info().event_count, last);
    last = (*reader)->info().event_count;
    EXPECT_EQ((*reader)->info().oddity(TraceOddity::kMalformedEvent).count, 0);
  }
}

TEST(TraceStream, ANameThatIsTakenIsAnError) {
  const TempDir dir;
  RegionClock clock;
  const std::string path = dir.Write("s.pftrace", "x");
  EXPECT_FALSE(TraceStream::Create(path, {}, &clock).ok());
  EXPECT_EQ(ReadFile(path), "x");
}

TEST(TraceFinalize, WritesWhatReadersAskFor) {
  const TempDir dir;
  RegionClock clock;
  Record(dir.File("h_42.1.pftrace"), &clock,
         {.pid = 42, .process_name = "prog"});
  dir.Write("h_42.1.meta.json", R"({"finished": true, "pid": 42, "rank": 2,
    "world_size": 4, "host_name": "h", "process_name": "prog",
    "device_properties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
    "counts": {"kernels": 2}, "dropped": {"spans": 1, "cupti_records": 2},
    "messages": ["a", "b \"c\""]})");
  ASSERT_OK_AND_ASSIGN(
      const FinalizedProfile profile,
      FinalizeProfile(dir.File("h_42.1"), {.steps = "none,inference_*"}));
  EXPECT_TRUE(profile.finished);
  EXPECT_EQ(profile.rank, 2);
  EXPECT_EQ(profile.dropped_count, 3);
  EXPECT_THAT(profile.messages, ElementsAre("a", "b \"c\""));
  ASSERT_OK_AND_ASSIGN(
      const TraceValidation validation,
      ValidateTrace(
          profile.trace_path,
          {.consumers = {TraceConsumer::kPerfetto, TraceConsumer::kHta,
                         TraceConsumer::kTensorBoard},
           .temporary_folder = dir.path()}));
  for (const TraceProblem& problem : validation.problems) {
    EXPECT_FALSE(problem.is_error) << problem.message;
  }
  ASSERT_OK_AND_ASSIGN(auto reader, TraceReader::Open(profile.trace_path));
  int starts = 0, ends = 0;
  std::string kernel_args;
  std::vector<std::string> gpu_annotations;
  std::vector<int64_t> external_ids;
  for (TraceEvent event; *reader->Next(&event);) {
    starts += event.phase == 's';
    ends += event.phase == 'f';
    if (event.kind == TraceEventKind::kGpuUserAnnotation) {
      gpu_annotations.emplace_back(event.name);
      EXPECT_EQ(event.tid, 7);
      EXPECT_EQ(event.time_ns, 2'499'999);
      EXPECT_EQ(event.end_ns(), 2'900'001);
    }
    int64_t id = 0;
    if (absl::SimpleAtoi(FindJsonValue(event.args, "External id"), &id)) {
      external_ids.push_back(id);
    }
    if (event.kind == TraceEventKind::kKernel) {
      kernel_args = std::string(event.args);
    }
  }
  EXPECT_THAT(
      gpu_annotations,
      ElementsAre("ProfilerStep#0", "fastvideo.region::inference_denoising"));
  EXPECT_THAT(external_ids, Each(5));
  EXPECT_THAT(external_ids, SizeIs(9))
      << "region, step, 2 launches, 3 works, a row for each of step and region";
  EXPECT_EQ(starts, 2);
  EXPECT_EQ(ends, 3);
  EXPECT_THAT(kernel_args, HasSubstr("\"grid\": [4, 1, 1]"));
  EXPECT_EQ(reader->info().Rank(), 2);
  EXPECT_THAT(std::string(reader->info().Metadata("deviceProperties")),
              HasSubstr("H200"));
  EXPECT_GT(reader->info().base_time_ns, 0);
  EXPECT_THAT(ReadFile(dir.File("summary_rank2.txt")),
              HasSubstr("fastvideo.region::inference_denoising"));
  EXPECT_THAT(ReadFile(dir.File("summary_rank2.json")),
              HasSubstr(R"("self_device_us":150)"));
  EXPECT_THAT(FindProfiles(dir.path(), 0), ElementsAre(dir.File("h_42.1")));
  EXPECT_THAT(FindProfiles(dir.path(), INT64_MAX), IsEmpty());
}

// Spans are written as they end: a region inside the program's first step comes
// before the step.
TEST(TraceFinalize, AProgramsOwnStepsStandAlone) {
  const TempDir dir;
  RegionClock clock;
  auto stream =
      TraceStream::Create(dir.File("h_42.1.pftrace"), {.pid = 42}, &clock);
  ASSERT_THAT(stream, IsOk());
  (*stream)->Span(77, 1'000'000, 2'000'000, "fastvideo.region::training_step",
                  5);
  (*stream)->Span(77, 900'000, 2'100'000, "ProfilerStep#7");
  ASSERT_THAT((*stream)->Flush(true), IsOk());
  ASSERT_OK_AND_ASSIGN(const FinalizedProfile profile,
                       FinalizeProfile(dir.File("h_42.1")));
  ASSERT_OK_AND_ASSIGN(auto reader, TraceReader::Open(profile.trace_path));
  std::vector<std::string> spans;
  for (TraceEvent event; *reader->Next(&event);) {
    if (event.kind == TraceEventKind::kUserAnnotation) {
      spans.emplace_back(event.name);
    }
  }
  EXPECT_THAT(spans,
              ElementsAre("fastvideo.region::training_step", "ProfilerStep#7"));
}

TEST(TraceFinalize, WithoutMeta) {
  const TempDir dir;
  RegionClock clock;
  Record(dir.File("h_42.1.pftrace"), &clock, {.pid = 42});
  ASSERT_OK_AND_ASSIGN(const FinalizedProfile profile,
                       FinalizeProfile(dir.File("h_42.1")));
  EXPECT_FALSE(profile.finished);
  EXPECT_EQ(profile.summary.gpu_event_count, 3);
  EXPECT_FALSE(FinalizeProfile(dir.File("absent")).ok());
}

}  // namespace
}  // namespace firstframe
