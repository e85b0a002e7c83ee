#include "lib/safetensors/shard_index.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

// Returns the rule of the first error, "" for none.
std::string Judge(absl::string_view text,
                  Strictness strictness = Strictness::kStrict) {
  const IndexVerdict verdict = CheckShardIndex("i", text, strictness);
  for (const Finding& finding : verdict.findings) {
    if (finding.severity == Severity::kError) return finding.rule;
  }
  return "";
}

TEST(ShardIndex, ReadsNamesFilesAndPositions) {
  const std::string text =
      R"({"metadata":{"total_size":12,"x":[1]},)"
      R"("weight_map":{"a":"1.safetensors","b":"2.safetensors",)"
      R"("c":"1.safetensors"}})";
  const IndexVerdict verdict = CheckShardIndex("i", text, Strictness::kStrict);
  ASSERT_TRUE(verdict.ok());
  EXPECT_TRUE(verdict.findings.empty());
  const ShardIndex& index = verdict.index;
  EXPECT_EQ(index.total_size_bytes, 12u);
  ASSERT_EQ(index.files.size(), 2u);
  EXPECT_EQ(index.files[1], "2.safetensors");
  ASSERT_EQ(index.entries.size(), 3u);
  EXPECT_EQ(index.entries[2].tensor, "c");
  EXPECT_EQ(index.entries[2].file, 0u);
  EXPECT_EQ(text.substr(index.entries[2].position, 3), "\"c\"");
}

TEST(ShardIndex, RefusesMalformedOnes) {
  EXPECT_EQ(Judge(""), "json_syntax");
  EXPECT_EQ(Judge("[]"), "json_syntax");
  EXPECT_EQ(Judge("{}"), "no_weight_map");
  EXPECT_EQ(Judge(R"({"weight_map":[]})"), "weight_map_not_map");
  EXPECT_EQ(Judge(R"({"weight_map":{}})"), "empty_weight_map");
  EXPECT_EQ(Judge(R"({"weight_map":{}})", Strictness::kLenient), "");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":1}})"), "bad_shard_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":""}})"), "bad_shard_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":".."}})"), "bad_shard_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":"/x"}})"), "bad_shard_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":"b","a":"c"}})"), "duplicate_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":"b","\u0061":"c"}})"),
            "duplicate_name");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":"b"},"weight_map":{}})"),
            "duplicate_field");
  EXPECT_EQ(Judge(R"({"weight_map":{"a":"b"}} x)"), "json_syntax");
  EXPECT_EQ(Judge(R"({"metadata":[],"weight_map":{"a":"b"}})"),
            "metadata_not_map");
  EXPECT_EQ(Judge(R"({"metadata":{"total_size":"1"},"weight_map":{"a":"b"}})"),
            "bad_total_size");
  EXPECT_EQ(Judge("{\"weight_map\":{\"\xFF\":\"b\"}}"), "not_utf8");
}

TEST(ShardIndex, RefusesEveryPrefix) {
  const std::string text =
      R"({"metadata":{"total_size":1},"weight_map":{"a":"1.safetensors"}})";
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(Judge(text.substr(0, size)), "") << size;
  }
  EXPECT_EQ(Judge(text + "\n"), "");
}

TEST(ShardIndex, ReadsPublicIndexes) {
  const char* corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  const struct {
    const char* name;
    size_t files;
  } kIndexes[] = {{"flux1_transformer", 3},
                  {"mochi_transformer", 2},
                  {"t5_xxl_text_encoder", 2}};
  for (const auto& each : kIndexes) {
    const std::string text = testing::ReadFile(absl::StrCat(
        corpus, "/safetensors_index/", each.name, ".safetensors.index.json"));
    const IndexVerdict verdict =
        CheckShardIndex(each.name, text, Strictness::kStrict);
    EXPECT_TRUE(verdict.findings.empty()) << each.name;
    EXPECT_GE(verdict.index.files.size(), each.files) << each.name;
    EXPECT_GT(verdict.index.total_size_bytes.value_or(0), 0u) << each.name;
  }
}

}  // namespace
}  // namespace firstframe
