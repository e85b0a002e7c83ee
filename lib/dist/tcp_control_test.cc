#include "lib/dist/tcp_control.h"

#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/dist/tcp_socket.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// Differs between tests that run at the same time.
int SomePort() {
  static int next = 20000 + static_cast<int>(::getpid() % 2000) * 20;
  return next += 10;
}

Launch LaunchOf(int rank, int size, int port) {
  Launch launch;
  launch.rank = rank;
  launch.world_size = size;
  launch.master_address = "127.0.0.1";
  launch.master_port = port;
  return launch;
}

std::vector<absl::Status> RunRanks(
    int size, int port, absl::Duration timeout,
    const std::function<absl::Status(Collective&)>& work) {
  std::vector<absl::Status> results(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      absl::StatusOr<std::unique_ptr<Collective>> group =
          ConnectTcpControl(LaunchOf(r, size, port), timeout);
      results[r] = group.ok() ? work(**group) : group.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

absl::Status ExchangeTwice(Collective& group) {
  for (const size_t size : {0, 100'000}) {
    const absl::StatusOr<std::vector<std::string>> all = group.Exchange(
        std::string(size, static_cast<char>('a' + group.rank())));
    if (!all.ok()) return all.status();
    for (int r = 0; r < group.size(); ++r) {
      if ((*all)[r] != std::string(size, static_cast<char>('a' + r))) {
        return absl::InternalError("wrong message");
      }
    }
    if (absl::Status status = group.Check(); !status.ok()) return status;
  }
  return Barrier(group);
}

TEST(TcpControl, RanksMeetAndExchange) {
  for (const int size : {1, 2, 5}) {
    for (const absl::Status& status :
         RunRanks(size, SomePort(), absl::Seconds(20), ExchangeTwice)) {
      EXPECT_THAT(status, IsOk());
    }
  }
}

TEST(TcpControl, StepsOverAPortThatIsTaken) {
  const int port = SomePort();
  ASSERT_OK_AND_ASSIGN(TcpSocket taken, TcpSocket::Listen(port));
  // The stranger answers with something that is no greeting of ours.
  std::thread stranger([&] {
    while (true) {
      absl::StatusOr<TcpSocket> caller =
          taken.Accept(absl::Now() + absl::Milliseconds(500));
      if (!caller.ok()) return;
      (void)caller->Send('x', "go away", absl::Now() + absl::Seconds(1));
    }
  });
  for (const absl::Status& status :
       RunRanks(2, port, absl::Seconds(20), ExchangeTwice)) {
    EXPECT_THAT(status, IsOk());
  }
  stranger.join();
}

TEST(TcpControl, AFailureReachesAllWithItsReason) {
  const auto results = RunRanks(
      4, SomePort(), absl::Seconds(20), [](Collective& group) -> absl::Status {
        if (absl::Status met = Barrier(group); !met.ok()) return met;
        if (group.rank() == 2) {
          group.Fail(absl::DataLossError("bad shard"));
          return absl::DataLossError("bad shard");
        }
        if (group.rank() ==
            3) {  // busy with its own work, looking now and then
          while (group.Check().ok()) absl::SleepFor(absl::Milliseconds(5));
          return group.Check();
        }
        return Barrier(group);
      });
  for (const int r : {0, 1, 3}) {
    EXPECT_THAT(results[r], StatusIs(absl::StatusCode::kAborted,
                                     HasSubstr("rank 2 failed: bad shard")));
  }
}

TEST(TcpControl, AVanishedRankReachesAll) {
  const absl::Time start = absl::Now();
  const auto results = RunRanks(
      3, SomePort(), absl::Seconds(30), [](Collective& group) -> absl::Status {
        if (absl::Status met = Barrier(group); !met.ok()) return met;
        if (group.rank() == 1) return absl::OkStatus();  // closes its socket
        return Barrier(group);
      });
  EXPECT_THAT(results[0],
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 left")));
  EXPECT_THAT(results[2],
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 left")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10)) << "no timeout was needed";
}

TEST(TcpControl, ARankThatNeverComesIsATimeout) {
  EXPECT_THAT(
      ConnectTcpControl(LaunchOf(0, 2, SomePort()), absl::Milliseconds(200)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("met 1 of 2 ranks")));
  EXPECT_THAT(
      ConnectTcpControl(LaunchOf(1, 2, SomePort()), absl::Milliseconds(200)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("did not meet rank 0")));
}

TEST(TcpControl, NoAddressIsMisuse) {
  Launch launch = LaunchOf(0, 2, 1);
  launch.master_address = "";
  EXPECT_THAT(
      ConnectTcpControl(launch, absl::Seconds(1)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("MASTER_ADDR")));
}

}  // namespace
}  // namespace firstframe
