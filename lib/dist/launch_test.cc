#include "lib/dist/launch.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<Launch> Read(const std::map<std::string, std::string>& values) {
  return ReadLaunch([&](absl::string_view name) -> std::optional<std::string> {
    const auto it = values.find(std::string(name));
    if (it == values.end()) return std::nullopt;
    return it->second;
  });
}

TEST(Launch, NoLauncherIsOneRank) {
  ASSERT_OK_AND_ASSIGN(const Launch launch, Read({}));
  EXPECT_EQ(launch.launcher, "none");
  EXPECT_EQ(launch.world_size, 1);
  EXPECT_EQ(launch.master_port, 0);
}

TEST(Launch, Torchrun) {
  ASSERT_OK_AND_ASSIGN(const Launch launch,
                       Read({{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "1234"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"OMPI_COMM_WORLD_SIZE", "99"}}));
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_size, 4);
  EXPECT_EQ(launch.master_address, "node0");
  EXPECT_EQ(launch.master_port, 1234);
  EXPECT_TRUE(launch.master_port_is_taken);
}

TEST(Launch, OpenMpiNeedsNoMaster) {
  ASSERT_OK_AND_ASSIGN(const Launch launch,
                       Read({{"OMPI_COMM_WORLD_RANK", "3"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}));
  EXPECT_EQ(launch.launcher, "openmpi");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.local_size, 4) << "as many as there are, until told";
  EXPECT_EQ(launch.master_address, "");
}

TEST(Launch, SlurmStepButNotBatchScript) {
  std::map<std::string, std::string> values = {
      {"SLURM_PROCID", "2"},
      {"SLURM_NTASKS", "4"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_JOB_NODELIST", "gpu[007-009],x1"}};
  ASSERT_OK_AND_ASSIGN(const Launch batch, Read(values));
  EXPECT_EQ(batch.world_size, 1) << "a batch script is one process";
  values["SLURM_STEP_ID"] = "0";
  ASSERT_OK_AND_ASSIGN(const Launch step, Read(values));
  EXPECT_EQ(step.launcher, "slurm");
  EXPECT_EQ(step.rank, 2);
  EXPECT_EQ(step.master_address, "gpu007");
  EXPECT_EQ(step.master_port, kDefaultMasterPort);
}

TEST(Launch, HalfASetNamesWhatIsMissing) {
  EXPECT_THAT(Read({{"RANK", "0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("WORLD_SIZE"), HasSubstr("torchrun"))));
  EXPECT_THAT(
      Read({{"WORLD_SIZE", "2"}, {"RANK", "1"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LOCAL_RANK")));
}

TEST(Launch, BadValuesNameTheVariable) {
  EXPECT_THAT(Read({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RANK: found '2'")));
  EXPECT_THAT(Read({{"MASTER_PORT", "70000"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("MASTER_PORT: found '70000'")));
  EXPECT_THAT(Read({{"RANK", "x"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
}

TEST(Launch, FirstHost) {
  EXPECT_EQ(FirstHostOfNodeList("a1"), "a1");
  EXPECT_EQ(FirstHostOfNodeList("a1,b2"), "a1");
  EXPECT_EQ(FirstHostOfNodeList("a[1,3-5]b,c"), "a1b");
  EXPECT_EQ(FirstHostOfNodeList("r[01-02]n[3-9]"), "r01n3");
  EXPECT_EQ(FirstHostOfNodeList(""), "");
  EXPECT_EQ(FirstHostOfNodeList("a["), "a");
}

}  // namespace
}  // namespace firstframe
