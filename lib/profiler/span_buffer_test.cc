#include "lib/profiler/span_buffer.h"

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(SpanRecorder, KeepsEverySpanInOrder) {
  SpanRecorder recorder(64 << 20);
  constexpr int kSpans = 10000;
  for (int i = 0; i < kSpans; ++i) recorder.Add({i, i + 1, 7, 1});
  int64_t next = 0;
  recorder.Drain([&](int64_t tid, const SpanRecord& record) {
    EXPECT_GT(tid, 0);
    EXPECT_EQ(record.start, next++);
    EXPECT_EQ(record.name, 7u);
  });
  EXPECT_EQ(next, kSpans);
  recorder.Drain([&](int64_t, const SpanRecord&) { ++next; });
  EXPECT_EQ(next, kSpans) << "drained once";
  EXPECT_EQ(recorder.dropped(), 0);
}

TEST(SpanRecorder, DrainsWhileThreadsRecord) {
  SpanRecorder recorder(256 << 20);
  constexpr int kThreads = 4, kSpans = 50000;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSpans; ++i) recorder.Add({i, i, 0, 0});
      --running;
    });
  }
  std::map<int64_t, int64_t> next;
  const auto drain = [&] {
    recorder.Drain([&](int64_t tid, const SpanRecord& record) {
      EXPECT_EQ(record.start, next[tid]++);
    });
  };
  while (running > 0) drain();
  for (std::thread& thread : threads) thread.join();
  drain();
  ASSERT_EQ(next.size(), static_cast<size_t>(kThreads));
  for (const auto& [tid, count] : next) EXPECT_EQ(count, kSpans) << tid;
}

TEST(SpanRecorder, DropsPastItsBudgetAndCounts) {
  SpanRecorder recorder(0);
  constexpr int kSpans = 10000;
  for (int i = 0; i < kSpans; ++i) recorder.Add({i, i, 0, 0});
  int64_t kept = 0;
  recorder.Drain([&](int64_t, const SpanRecord&) { ++kept; });
  EXPECT_GT(kept, 0);
  EXPECT_EQ(kept + recorder.dropped(), kSpans);
}

TEST(SpanRecorder, ANewRecorderAtTheSamePlace) {
  for (int i = 0; i < 3; ++i) {
    SpanRecorder recorder(1 << 20);
    recorder.Add({i, i, 0, 0});
    int64_t seen = 0;
    recorder.Drain([&](int64_t, const SpanRecord& r) { seen += r.start == i; });
    EXPECT_EQ(seen, 1);
  }
}

}  // namespace
}  // namespace firstframe
