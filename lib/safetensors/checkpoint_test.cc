#include "lib/safetensors/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/layout.h"
#include "lib/safetensors/testing/conformance_cases.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::BuildSafetensors;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of U8 tensors of one byte each.
std::string FileOf(const std::vector<std::string>& names) {
  std::string json = "{";
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&json, i ? "," : "", "\"", names[i],
                    R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",",
                    i + 1, "]}");
  }
  return BuildSafetensors(json + "}", names.size());
}

class CheckpointTest : public ::testing::Test {
 protected:
  // Opens the folder and returns the error, or the warnings' rules.
  std::string Open(Strictness strictness = Strictness::kStrict) {
    const auto checkpoint =
        Checkpoint::Open(dir_.path(), {.strictness = strictness});
    if (!checkpoint.ok()) return std::string(checkpoint.status().message());
    std::string rules;
    for (const Finding& finding : checkpoint->warnings()) {
      absl::StrAppend(&rules, rules.empty() ? "" : " ", finding.rule);
    }
    return rules;
  }
  void WriteTwoShards(const std::string& index) {
    dir_.Write("model-00001-of-00002.safetensors", FileOf({"a", "b"}));
    dir_.Write("model-00002-of-00002.safetensors", FileOf({"c"}));
    dir_.Write("model.safetensors.index.json", index);
  }
  static constexpr char kIndex[] =
      R"({"metadata":{"total_size":3},"weight_map":{)"
      R"("a":"model-00001-of-00002.safetensors",)"
      R"("b":"model-00001-of-00002.safetensors",)"
      R"("c":"model-00002-of-00002.safetensors"}})";
  static std::string Replaced(const std::string& from, const std::string& to) {
    std::string text = kIndex;
    return text.replace(text.find(from), from.size(), to);
  }
  TempDir dir_;
};

TEST_F(CheckpointTest, OneFile) {
  const std::string path = dir_.Write("x.safetensors", FileOf({"a", "b"}));
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path));
  ASSERT_EQ(checkpoint.entries().size(), 2u);
  ASSERT_NE(checkpoint.Find("b"), nullptr);
  EXPECT_EQ(checkpoint.Find("z"), nullptr);
  EXPECT_EQ(checkpoint.size_bytes(), 2u);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(checkpoint));
  ASSERT_OK_AND_ASSIGN(const HostTensor b, reader.Read(*checkpoint.Find("b")));
  EXPECT_THAT(b.data<uint8_t>(), ElementsAre(2));
  EXPECT_THAT(checkpoint.CheckUnchanged(), IsOk());
}

TEST_F(CheckpointTest, ShardsThroughEitherIndexName) {
  for (const std::string stem : {"model", "diffusion_pytorch_model"}) {
    const std::string folder = stem + "_folder/";
    dir_.Write(folder + "model-00001-of-00002.safetensors", FileOf({"a", "b"}));
    dir_.Write(folder + "model-00002-of-00002.safetensors", FileOf({"c"}));
    const std::string index =
        dir_.Write(folder + stem + ".safetensors.index.json", kIndex);
    ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                         Checkpoint::Open(dir_.File(folder)));
    EXPECT_EQ(checkpoint.index_path(), index);
    EXPECT_EQ(checkpoint.entries().size(), 3u);
    EXPECT_TRUE(checkpoint.warnings().empty());
    EXPECT_THAT(Checkpoint::Open(index), IsOk());
  }
}

TEST_F(CheckpointTest, AbsentShard) {
  WriteTwoShards(kIndex);
  ASSERT_EQ(::unlink(dir_.File("model-00002-of-00002.safetensors").c_str()), 0);
  EXPECT_THAT(Open(), AllOf(HasSubstr("model.safetensors.index.json: byte "),
                            HasSubstr("found nothing, expected the shard "
                                      "\"model-00002-of-00002.safetensors\" "
                                      "with 1 tensors")));
}

TEST_F(CheckpointTest, EveryShortShardIsCounted) {
  const std::string file = FileOf({"a"});
  dir_.Write("1.safetensors", file.substr(0, file.size() - 1));
  dir_.Write("2.safetensors", file.substr(0, 9));
  dir_.Write("model.safetensors.index.json",
             R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  EXPECT_THAT(Open(), AllOf(HasSubstr("1.safetensors: byte"),
                            HasSubstr("(and 1 more error)")));
}

TEST_F(CheckpointTest, NameMissingFromItsShard) {
  WriteTwoShards(
      Replaced("\"c\"", "\"d\":\"model-00002-of-00002.safetensors\",\"c\""));
  EXPECT_THAT(Open(Strictness::kLenient),
              AllOf(HasSubstr("tensor \"d\""), HasSubstr("does not hold")));
}

TEST_F(CheckpointTest, TensorMissingFromTheIndex) {
  WriteTwoShards(Replaced("\"b\":\"model-00001-of-00002.safetensors\",", ""));
  EXPECT_THAT(Open(), AllOf(HasSubstr("tensor \"b\""),
                            HasSubstr("the index does not have")));
  EXPECT_EQ(Open(Strictness::kLenient), "not_in_index total_size");
}

TEST_F(CheckpointTest, TheIndexDecidesWhichShardHasAName) {
  dir_.Write("base.safetensors", FileOf({"a", "b"}));
  dir_.Write("overlay.safetensors", FileOf({"z", "a"}));
  dir_.Write("model.safetensors.index.json",
             R"({"weight_map":{"a":"overlay.safetensors",)"
             R"("z":"overlay.safetensors","b":"base.safetensors"}})");
  EXPECT_EQ(Open(), "name_in_two_shards");
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       Checkpoint::Open(dir_.path()));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(checkpoint));
  ASSERT_OK_AND_ASSIGN(const HostTensor a, reader.Read(*checkpoint.Find("a")));
  EXPECT_THAT(a.data<uint8_t>(), ElementsAre(2));  // the overlay's second byte
  EXPECT_EQ(checkpoint.entries().size(), 3u);
}

TEST_F(CheckpointTest, WithoutAnIndexNamesMustBeUnique) {
  dir_.Write("a-1-of-2.safetensors", FileOf({"x", "y"}));
  dir_.Write("a-2-of-2.safetensors", FileOf({"z"}));
  EXPECT_EQ(Open(), "");
  dir_.Write("b-1-of-1.safetensors", FileOf({"w", "y"}));
  EXPECT_THAT(Open(), AllOf(HasSubstr("b-1-of-1.safetensors: byte"),
                            HasSubstr("tensor \"y\""),
                            HasSubstr("a-1-of-2.safetensors too, at byte")));
}

TEST_F(CheckpointTest, TwoSplitsInOneFolderFollowTheIndex) {
  WriteTwoShards(kIndex);
  dir_.Write("other-00001-of-00001.safetensors", FileOf({"a", "b", "c"}));
  EXPECT_EQ(Open(), "");
}

TEST_F(CheckpointTest, TotalSizeIsChecked) {
  WriteTwoShards(Replaced(":3}", ":4}"));
  EXPECT_THAT(Open(), HasSubstr("a total_size of 4, expected 3"));
  EXPECT_EQ(Open(Strictness::kLenient), "total_size");
}

TEST_F(CheckpointTest, AnIndexCannotLeadOutOfItsFolder) {
  dir_.Write("model.safetensors.index.json",
             R"({"weight_map":{"a":"../x.safetensors"}})");
  EXPECT_THAT(Open(Strictness::kLenient), HasSubstr("a plain file name"));
}

TEST_F(CheckpointTest, TwoIndexesNeedAChoice) {
  WriteTwoShards(kIndex);
  dir_.Write("diffusion_pytorch_model.safetensors.index.json", kIndex);
  EXPECT_THAT(
      Checkpoint::Open(dir_.path()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pass the one")));
  EXPECT_THAT(Checkpoint::Open(dir_.File("model.safetensors.index.json")),
              IsOk());
}

TEST_F(CheckpointTest, VariantsAreLeftAside) {
  dir_.Write("diffusion_pytorch_model.safetensors", FileOf({"a"}));
  dir_.Write("diffusion_pytorch_model.fp16.safetensors", FileOf({"a"}));
  EXPECT_EQ(Open(), "file_left_aside");
  ASSERT_OK_AND_ASSIGN(const auto layout, FindCheckpoint(dir_.path()));
  EXPECT_THAT(layout.files,
              ElementsAre(dir_.File("diffusion_pytorch_model.safetensors")));
}

// The cache of huggingface_hub: snapshots/REVISION/NAME links to blobs/SHA.
TEST_F(CheckpointTest, FollowsTheLinksOfAHubCache) {
  dir_.Write("blobs/0123abcd", FileOf({"a"}));
  dir_.Write("blobs/89ab", R"({"weight_map":{"a":"m.safetensors"}})");
  dir_.Write("snapshots/r/config.json", "{}");
  const auto link = [&](const std::string& to, const std::string& name) {
    ASSERT_EQ(::symlink(to.c_str(), dir_.File("snapshots/r/" + name).c_str()),
              0);
  };
  link("../../blobs/0123abcd", "m.safetensors");
  link("../../blobs/89ab", "model.safetensors.index.json");
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       Checkpoint::Open(dir_.File("snapshots/r")));
  EXPECT_EQ(checkpoint.files()[0].link_target, "../../blobs/0123abcd");
  // A blob has no suffix: its content decides.
  EXPECT_THAT(Checkpoint::Open(dir_.File("blobs/0123abcd")), IsOk());
  EXPECT_THAT(
      Checkpoint::Open(dir_.File("blobs/89ab")),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("m.safetensors")));
  dir_.Write("blobs/0123abcd", "");
  EXPECT_THAT(
      Checkpoint::Open(dir_.File("snapshots/r")),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("m.safetensors -> ../../blobs/0123abcd: byte 0: "
                         "found an empty file")));
  ASSERT_EQ(::unlink(dir_.File("blobs/0123abcd").c_str()), 0);
  EXPECT_THAT(Checkpoint::Open(dir_.File("snapshots/r")),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("a link to ../../blobs/0123abcd, which is "
                                 "not there")));
  EXPECT_THAT(Checkpoint::Open(dir_.File("snapshots/r/m.safetensors")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("a link to ../../blobs/0123abcd")));
}

TEST_F(CheckpointTest, SaysWhatAFolderHoldsInstead) {
  EXPECT_THAT(Open(), HasSubstr("found 0 other files"));
  dir_.Write("pytorch_model.bin", "x");
  EXPECT_THAT(Open(), HasSubstr("pytorch_model.bin, which are Python pickles"));
  dir_.Write("model_index.json", "{}");
  dir_.Write("vae/config.json", "{}");
  EXPECT_THAT(Open(), HasSubstr("one of its components: vae"));
  EXPECT_THAT(Checkpoint::Open(dir_.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing")));
}

TEST_F(CheckpointTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(dir_.File("p.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(
      Checkpoint::Open(dir_.File("p.safetensors")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found a pipe")));
}

TEST_F(CheckpointTest, SeesAChangeAfterOpen) {
  const std::string path = dir_.Write("x.safetensors", FileOf({"a", "b"}));
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path));
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(checkpoint));
  dir_.Write("x.safetensors", FileOf({"a"}));
  EXPECT_THAT(checkpoint.CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("changed since")));
  EXPECT_THAT(CheckpointReader::Open(checkpoint),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
  EXPECT_THAT(reader.Read(*checkpoint.Find("b")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("tensor \"b\"")));
}

TEST(Checkpoint, OpensThePublicShards) {
  const char* corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  ASSERT_OK_AND_ASSIGN(
      const Checkpoint checkpoint,
      Checkpoint::Open(absl::StrCat(corpus, "/safetensors/fluxml_sharded")));
  EXPECT_EQ(checkpoint.files().size(), 6u);
  EXPECT_FALSE(checkpoint.entries().empty());
  EXPECT_TRUE(checkpoint.warnings().empty());
}

}  // namespace
}  // namespace firstframe
