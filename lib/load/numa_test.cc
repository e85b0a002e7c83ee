#include "lib/load/numa.h"

#include <sched.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/load/staging.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Numa, ParsesTheKernelsLists) {
  ASSERT_OK_AND_ASSIGN(const auto cpus, ParseCpuList("0-2,8,10-11\n"));
  EXPECT_THAT(cpus, ElementsAre(0, 1, 2, 8, 10, 11));
  ASSERT_OK_AND_ASSIGN(const auto none, ParseCpuList("\n"));
  EXPECT_TRUE(none.empty());
  for (const char* bad : {"a", "3-1", "-1", "1,", "0-99999999", "1-2-3"}) {
    EXPECT_THAT(ParseCpuList(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("list of CPUs")))
        << bad;
  }
}

// A folder like /sys/devices/system/node.
class FakeNodes {
 public:
  explicit FakeNodes(const std::string& online) {
    dir_.Write("online", online);
    for (const char* node : {"node0", "node1", "node2"}) {
      ::mkdir(dir_.File(node).c_str(), 0700);
    }
    dir_.Write("node0/cpulist", "0-1\n");
    dir_.Write("node1/cpulist", "2-3\n");
    dir_.Write("node2/cpulist", "\n");  // memory alone
  }
  std::string path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

TEST(Numa, FindsTheCpusOfANode) {
  const FakeNodes nodes("0-2\n");
  const NumaPlace place = FindNumaPlace(1, nodes.path());
  EXPECT_EQ(place.node, 1);
  EXPECT_THAT(place.cpus, ElementsAre(2, 3));
}

TEST(Numa, NothingToBindTo) {
  const FakeNodes several("0-2\n");
  EXPECT_FALSE(FindNumaPlace(-1, several.path()).is_bound());
  EXPECT_FALSE(FindNumaPlace(2, several.path()).is_bound()) << "no CPUs";
  EXPECT_FALSE(FindNumaPlace(7, several.path()).is_bound()) << "no such node";
  const FakeNodes one("0\n");
  EXPECT_FALSE(FindNumaPlace(0, one.path()).is_bound());
  EXPECT_FALSE(FindNumaPlace(0, "/nonexistent").is_bound());
}

TEST(Numa, MemoryOfANodeIsUsable) {
  ASSERT_OK_AND_ASSIGN(const HostArena arena, HostArena::Allocate(4 << 20));
  const absl::Status status = PreferNode(arena.data(), 4 << 20, 0);
  if (!status.ok()) {
    // A container may forbid the call; it must then say so and harm nothing.
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("node 0 refused")));
  }
  std::memset(arena.data(), 1, 4 << 20);
  EXPECT_THAT(
      PreferNode(arena.data(), 4 << 20, 100000),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("100000")));
}

TEST(Numa, ThreadsMoveOnlyWhereTheyMay) {
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
    RunThreadOn({});
    RunThreadOn({4000});  // none that this thread may use
    cpu_set_t after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    RunThreadOn({first, 4000});
    ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_EQ(CPU_COUNT(&after), 1);
    EXPECT_TRUE(CPU_ISSET(first, &after));
  }).join();
}

}  // namespace
}  // namespace firstframe
