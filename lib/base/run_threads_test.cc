#include "lib/base/run_threads.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(RunOnThreads, CallsEachNumberOnceOnAThreadOfItsOwn) {
  std::vector<int> calls(5);
  std::vector<std::thread::id> ids(5);
  std::atomic<int> arrived = 0;
  RunOnThreads(5, [&](int t) {
    ++calls[t];
    ids[t] = std::this_thread::get_id();
    // Not one after the other: each waits for all.
    ++arrived;
    while (arrived < 5) std::this_thread::yield();
  });
  EXPECT_EQ(calls, std::vector<int>(5, 1));
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 5u);
}

TEST(RunOnThreads, TheCallerAloneWithFewerThanTwo) {
  for (const int threads : {-1, 0, 1}) {
    std::vector<int> seen;
    RunOnThreads(threads, [&](int t) { seen.push_back(t); });
    EXPECT_EQ(seen, std::vector<int>{0}) << threads;
  }
}

}  // namespace
}  // namespace firstframe
