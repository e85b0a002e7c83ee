#include "lib/safetensors/check.h"

#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/check_report.h"
#include "lib/safetensors/sharded_writer.h"
#include "lib/safetensors/testing/conformance_cases.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::BuildSafetensors;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

const char kSound[] =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

class CheckTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::string& path, CheckOptions options = {}) {
    reports_.clear();
    ConformanceCheck check(options, [this](const FileReport& report) {
      reports_.push_back(report);
    });
    const absl::Status status = check.Check(path);
    totals_ = check.totals();
    return status;
  }
  TempDir dir_;
  std::vector<FileReport> reports_;
  CheckTotals totals_;
};

TEST_F(CheckTest, AFile) {
  const std::string path =
      dir_.Write("a.safetensors", BuildSafetensors(kSound, 8));
  ASSERT_THAT(Check(path), IsOk());
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(reports_[0].is_valid());
  EXPECT_EQ(reports_[0].tensors, 1u);
  EXPECT_EQ(totals_.summary.all.elements, 2u);
  EXPECT_EQ(totals_.invalid, 0u);
}

TEST_F(CheckTest, EveryFileOfAFolderAndItsIndex) {
  for (int i = 0; i < 3; ++i) {
    dir_.Write(absl::StrCat("m-", i, ".safetensors"),
               BuildSafetensors(absl::StrCat(R"({"t)", i,
                                             R"(":{"dtype":"U8","shape":[1],)"
                                             R"("data_offsets":[0,1]}})"),
                                i == 1 ? 0 : 1));
  }
  dir_.Write("model.safetensors.index.json",
             R"({"weight_map":{"t0":"m-0.safetensors","t1":"m-1.safetensors",)"
             R"("x":"gone.safetensors"}})");
  ASSERT_THAT(Check(dir_.path()), IsOk());
  ASSERT_EQ(reports_.size(), 4u);  // two shards, the index, the stray file
  EXPECT_TRUE(reports_[0].is_valid());
  EXPECT_EQ(reports_[1].findings[0].rule, "truncated_file");
  EXPECT_TRUE(reports_[2].is_index);
  ASSERT_EQ(reports_[2].findings.size(), 1u);
  EXPECT_EQ(reports_[2].findings[0].rule, "missing_shard");
  EXPECT_EQ(reports_[3].path, dir_.File("m-2.safetensors"));
  EXPECT_EQ(totals_.files, 3u);
  EXPECT_EQ(totals_.invalid, 2u);
  EXPECT_EQ(totals_.errors, 2u);
}

TEST_F(CheckTest, NamesInTwoFilesWithoutAnIndex) {
  dir_.Write("x.safetensors", BuildSafetensors(kSound, 8));
  dir_.Write("y.safetensors", BuildSafetensors(kSound, 8));
  ASSERT_THAT(Check(dir_.path()), IsOk());
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[2].path, dir_.path());
  EXPECT_EQ(reports_[2].findings[0].rule, "name_in_two_files");
  EXPECT_EQ(totals_.invalid, 1u);
}

TEST_F(CheckTest, APipelineByItsComponents) {
  dir_.Write("p/model_index.json", "{}");
  dir_.Write("p/vae/d.safetensors", BuildSafetensors(kSound, 8));
  dir_.Write("p/scheduler/c.json", "{}");
  ASSERT_THAT(Check(dir_.File("p")), IsOk());
  EXPECT_EQ(totals_.files, 1u);
  EXPECT_THAT(Check(dir_.File("p/scheduler")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("scheduler")));
}

TEST_F(CheckTest, ABlobMustHaveTheHashItIsNamedAfter) {
  const std::string file = BuildSafetensors(kSound, 8);
  const std::string good = HashHex(
      HashKind::kSha256,
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(file.data()),
                          file.size()));
  const CheckOptions options = {.hash = HashKind::kSha256};
  ASSERT_THAT(Check(dir_.Write("blobs/" + good, file), options), IsOk());
  EXPECT_EQ(reports_[0].hash, good);
  EXPECT_TRUE(reports_[0].is_valid());
  std::string damaged = file;
  damaged.back() ^= 1;
  dir_.Write("blobs/" + good, damaged);
  ASSERT_EQ(
      ::symlink(("blobs/" + good).c_str(), dir_.File("m.safetensors").c_str()),
      0);
  ASSERT_THAT(Check(dir_.File("m.safetensors"), options), IsOk());
  ASSERT_FALSE(reports_[0].is_valid());
  EXPECT_EQ(reports_[0].findings[0].rule, "blob_hash");
  ASSERT_THAT(Check(dir_.File("m.safetensors")), IsOk());
  EXPECT_TRUE(reports_[0].is_valid()) << "only a hash can tell";
}

TEST_F(CheckTest, SummaryCountsTypesAndAlignment) {
  const std::string path = dir_.Write(
      "a.safetensors",
      BuildSafetensors(
          R"({"u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
          R"("f":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
          R"("n":{"dtype":"F4","shape":[2,2],"data_offsets":[11,13]},)"
          R"("z":{"dtype":"F32","shape":[0],"data_offsets":[13,13]}}  )",
          13));
  ASSERT_THAT(Check(path), IsOk());
  const TensorSummary& summary = totals_.summary;
  EXPECT_EQ(summary.all.tensors, 4u);
  EXPECT_EQ(summary.all.elements, 9u);
  EXPECT_EQ(summary.all.size_bytes, 13u);
  EXPECT_EQ(summary.by_dtype[static_cast<int>(DType::kF32)].tensors, 2u);
  EXPECT_EQ(summary.empty, 1u);
  EXPECT_EQ(summary.misaligned, 2u);
  EXPECT_EQ(summary.largest, "f");
  std::ostringstream text, jsonl;
  WriteSummaryText(summary, text);
  WriteSummaryJsonl(summary, jsonl);
  EXPECT_THAT(text.str(), HasSubstr("2 not at their element's size"));
  EXPECT_THAT(jsonl.str(), HasSubstr(R"("parameters":9,"size_bytes":13)"));
}

TEST_F(CheckTest, ReportsNameTheRuleAndTheByte) {
  ASSERT_THAT(Check(dir_.Write("a.safetensors", "PK\x03\x04zzzzzzzz")), IsOk());
  std::ostringstream text, jsonl;
  WriteFileReportText(reports_[0], text);
  WriteFileReportJsonl(reports_[0], std::nullopt, jsonl);
  EXPECT_THAT(text.str(), HasSubstr("error: " + reports_[0].path +
                                    ": byte 0: found a zip archive"));
  EXPECT_THAT(text.str(), HasSubstr("[zip_file]"));
  EXPECT_THAT(jsonl.str(), HasSubstr(R"("rule":"zip_file")"));
  EXPECT_THAT(jsonl.str(), HasSubstr(R"("byte":0)"));
  EXPECT_THAT(jsonl.str(), HasSubstr(R"("valid":false)"));
}

}  // namespace
}  // namespace firstframe
