#include "lib/activation/trace_queue.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/trace_step.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

class TraceQueueTest : public ::testing::Test {
 protected:
  TraceQueueTest() {
    TraceOptions options;
    options.enabled = true;
    options.stats = {TraceStat::kSum};
    options.output = path_;
    tracer_ = *ActivationTracer::Create(options, 1);
  }

  // A record whose sum is known once `*ready`.
  QueuedRecord Record(const std::string& module, double sum,
                      const bool* ready) {
    return {
        .module = module,
        .label = "out",
        .step = CurrentTraceStep(),
        .shape = {1},
        .poll = [=](bool wait) -> absl::StatusOr<std::optional<TensorStats>> {
          if (!*ready && !wait) return std::nullopt;
          TensorStats stats;
          stats.numel = 1;
          stats.sum = sum;
          return stats;
        }};
  }

  std::string File() { return testing::ReadFile(path_); }

  testing::TempDir dir_;
  const std::string path_ = dir_.path() + "/trace.jsonl";
  std::unique_ptr<ActivationTracer> tracer_;
};

TEST_F(TraceQueueTest, KeepsTheOrderAndTheStepOfEachRecord) {
  TraceQueue queue(tracer_.get());
  bool slow = false;
  const bool fast = true;
  {
    const TraceStep step(7);
    ASSERT_THAT(queue.Add(Record("a", 1, &slow)), testing::IsOk());
  }
  const TraceStep step(8);
  ASSERT_THAT(queue.Add(Record("b", 2, &fast)), testing::IsOk());
  EXPECT_EQ(File(), "");  // b waits behind a
  slow = true;
  ASSERT_THAT(queue.Add(Record("c", 3, &fast)), testing::IsOk());
  EXPECT_EQ(
      File(),
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": 7, \"sum\": 1.0}\n"
      "{\"module\": \"b\", \"tensor\": \"out\", \"step\": 8, \"sum\": 2.0}\n"
      "{\"module\": \"c\", \"tensor\": \"out\", \"step\": 8, \"sum\": 3.0}\n");
}

TEST_F(TraceQueueTest, WaitsForTheOldestWhenFullAndForAllWhenFlushed) {
  TraceQueue queue(tracer_.get(), /*max_pending=*/2);
  const bool never = false;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_THAT(queue.Add(Record(name, 1, &never)), testing::IsOk());
  }
  EXPECT_NE(File().find("\"a\""), std::string::npos);
  EXPECT_EQ(File().find("\"b\""), std::string::npos);
  ASSERT_THAT(queue.Flush(), testing::IsOk());
  EXPECT_NE(File().find("\"c\""), std::string::npos);
}

TEST_F(TraceQueueTest, AnErrorCostsItsRecordAlone) {
  TraceQueue queue(tracer_.get());
  const bool ready = true;
  QueuedRecord bad = Record("bad", 1, &ready);
  bad.poll = [](bool) { return absl::InternalError("kernel failed"); };
  EXPECT_EQ(queue.Add(std::move(bad)).message(), "bad: kernel failed");
  ASSERT_THAT(queue.Add(Record("good", 1, &ready)), testing::IsOk());
  EXPECT_NE(File().find("good"), std::string::npos);
}

}  // namespace
}  // namespace firstframe
