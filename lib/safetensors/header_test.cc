#include "lib/safetensors/header.h"

#include <dirent.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/testing/conformance_cases.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::BuildSafetensors;
using ::firstframe::testing::ConformanceCase;
using ::firstframe::testing::ConformanceCases;
using ::firstframe::testing::HeaderLength;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::Verdict;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

HeaderVerdict Check(const std::string& file,
                    Strictness strictness = Strictness::kStrict) {
  return CheckSafetensorsHeader("f", file, file.size(), strictness);
}

std::string FirstError(const HeaderVerdict& verdict) {
  return std::string(FindingsStatus(verdict.findings).message());
}

bool HasRule(const HeaderVerdict& verdict, const std::string& rule,
             Severity severity) {
  for (const Finding& finding : verdict.findings) {
    if (finding.rule == rule && finding.severity == severity) return true;
  }
  return false;
}

TEST(SafetensorsHeader, JudgesEveryKindOfFile) {
  const std::vector<ConformanceCase> cases = ConformanceCases();
  EXPECT_GE(cases.size(), 125u);
  std::set<std::string> names;
  for (const ConformanceCase& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_TRUE(names.insert(each.name).second);
    const HeaderVerdict strict = Check(each.bytes);
    const HeaderVerdict lenient = Check(each.bytes, Strictness::kLenient);
    EXPECT_EQ(strict.ok(), each.verdict == Verdict::kAccept)
        << FirstError(strict);
    EXPECT_EQ(lenient.ok(), each.verdict != Verdict::kRefuse)
        << FirstError(lenient);
    if (each.rule.empty()) {
      EXPECT_TRUE(strict.findings.empty()) << strict.findings[0].rule;
      continue;
    }
    EXPECT_TRUE(HasRule(strict, each.rule,
                        strict.ok() ? Severity::kWarning : Severity::kError))
        << (strict.findings.empty() ? "no finding" : strict.findings[0].rule);
    EXPECT_TRUE(HasRule(lenient, each.rule,
                        lenient.ok() ? Severity::kWarning : Severity::kError));
    for (const Finding& finding : strict.findings) {
      EXPECT_EQ(finding.path, "f");
      EXPECT_FALSE(finding.found.empty());
      EXPECT_FALSE(finding.expected.empty());
      ASSERT_TRUE(finding.position.has_value());
      EXPECT_LE(*finding.position, each.bytes.size());
    }
  }
}

// Every file that is refused or accepted whole is refused when cut anywhere.
TEST(SafetensorsHeader, RefusesEveryFileCutAnywhere) {
  for (const ConformanceCase& each : ConformanceCases()) {
    if (each.bytes.size() > 2000) continue;
    const bool has_trailing = each.rule == "trailing_bytes";
    for (size_t size = 0; size < each.bytes.size() && !has_trailing; ++size) {
      const HeaderVerdict verdict =
          Check(each.bytes.substr(0, size), Strictness::kLenient);
      ASSERT_FALSE(verdict.ok()) << each.name << " cut to " << size;
    }
  }
}

TEST(SafetensorsHeader, ReturnsTensorsInTheOrderOfTheirData) {
  const std::string file = BuildSafetensors(
      R"({"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("__metadata__":{"format":"pt","z":"1"},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
      8);
  ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header,
                       ParseSafetensorsHeader("f", file, file.size()));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].dtype, DType::kBF16);
  EXPECT_THAT(header.tensors[1].shape, ElementsAre(2, 1));
  EXPECT_EQ(header.tensors[1].begin, 4u);
  EXPECT_EQ(header.tensors[1].size_bytes(), 4u);
  EXPECT_EQ(file.substr(header.tensors[0].position, 3), "\"a\"");
  EXPECT_EQ(header.data_offset, file.size() - 8);
  EXPECT_EQ(header.data_size, 8u);
  EXPECT_THAT(header.metadata,
              ElementsAre(Pair("format", "pt"), Pair("z", "1")));
}

TEST(SafetensorsHeader, ErrorsSayWhereWhatAndExpected) {
  EXPECT_EQ(
      FirstError(Check(BuildSafetensors(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
          12))),
      "f: byte 62: tensor \"b\": found data from 8 to 12, expected data from "
      "4, where \"a\" ends");
  EXPECT_EQ(
      FirstError(Check(BuildSafetensors(
          R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4))),
      "f: byte 22: tensor \"a\": found the dtype \"f32\", expected F32 "
      "(case matters)");
  EXPECT_EQ(
      FirstError(Check(BuildSafetensors(
          R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4))),
      "f: byte 37: tensor \"a\": found the number -1, expected a whole "
      "number from 0 to 2^64 - 1");
}

TEST(SafetensorsHeader, DuplicateNamesGiveBothPositions) {
  const std::string file = BuildSafetensors(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      8);
  EXPECT_THAT(ParseSafetensorsHeader("f", file, file.size()),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("byte 62: tensor \"a\""),
                             HasSubstr("is at byte 9"))));
}

TEST(SafetensorsHeader, TruncationGivesBothSizes) {
  const std::string file = BuildSafetensors(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  EXPECT_THAT(ParseSafetensorsHeader("f", file, file.size() - 1),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("65 of 66 bytes, expected 1 bytes more")));
}

TEST(SafetensorsHeader, ReportsEveryBadEntryUpToALimit) {
  std::string json = "{";
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&json, i ? "," : "", "\"t", i,
                    R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,4]})");
  }
  json += "}";
  const HeaderVerdict verdict = Check(BuildSafetensors(json, 4));
  EXPECT_EQ(verdict.findings.size(), kMaxFindings);
  EXPECT_EQ(verdict.dropped_findings, 50u);
  EXPECT_THAT(FirstError(verdict), HasSubstr("(and 99 more errors)"));
}

TEST(SafetensorsHeader, WarningsCannotHideAnError) {
  std::string json = "{";
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(
        &json, i ? "," : "", "\"t", i,
        R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1})");
  }
  json += R"(,"bad":{"dtype":"F99","shape":[0],"data_offsets":[0,0]}})";
  const HeaderVerdict verdict = Check(BuildSafetensors(json, 0));
  EXPECT_FALSE(verdict.ok());
  EXPECT_THAT(FirstError(verdict), HasSubstr("F99"));
}

TEST(SafetensorsHeader, LimitOfTheHeaderIsExact) {
  std::string file = BuildSafetensors("{}", 0);
  file.resize(8 + kMaxHeaderSize, ' ');
  file.replace(0, 8, HeaderLength(kMaxHeaderSize));
  EXPECT_TRUE(Check(file).ok()) << FirstError(Check(file));
  file.replace(0, 8, HeaderLength(kMaxHeaderSize + 1));
  file.push_back(' ');
  EXPECT_THAT(FirstError(Check(file)),
              AllOf(HasSubstr("100000001"), HasSubstr("at most 100000000")));
}

TEST(SafetensorsHeader, DimensionsBeyondInt64StandForEmptyTensors) {
  const std::string file = BuildSafetensors(
      R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],)"
      R"("data_offsets":[0,0]}})",
      0);
  ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header,
                       ParseSafetensorsHeader("f", file, file.size()));
  EXPECT_EQ(CheckedNumElements(header.tensors[0].shape), 0);
}

TEST(SafetensorsHeader, LongNamesAreCutInMessages) {
  const std::string name =
      std::string(199, 'n') + "\xC3\xA9" + std::string(5000, 'm');
  EXPECT_EQ(QuoteName(name),
            absl::StrCat("\"", std::string(199, 'n'), "\"... (5201 bytes)"));
  EXPECT_EQ(QuoteName(absl::string_view("a\0b", 3)), "\"a\\u0000b\"");
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  if (DIR* dir = ::opendir(folder.c_str())) {
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (absl::EndsWith(name, ".safetensors")) {
        files.push_back(absl::StrCat(folder, "/", name));
      }
    }
    ::closedir(dir);
  }
  return files;
}

TEST(SafetensorsHeader, JudgesPublicFiles) {
  const char* corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  const std::string folder = absl::StrCat(corpus, "/safetensors");
  const auto good = FilesIn(folder), bad = FilesIn(folder + "/malformed");
  EXPECT_GE(good.size(), 14u);
  EXPECT_GE(bad.size(), 9u);
  for (const std::string& path : good) {
    const std::string file = testing::ReadFile(path);
    const bool has_leading_space = absl::StrContains(path, "leading_padded");
    EXPECT_EQ(Check(file).ok(), !has_leading_space)
        << path << ": " << FirstError(Check(file));
    EXPECT_TRUE(Check(file, Strictness::kLenient).ok()) << path;
  }
  for (const std::string& path : bad) {
    EXPECT_FALSE(Check(testing::ReadFile(path), Strictness::kLenient).ok())
        << path;
  }
}

}  // namespace
}  // namespace firstframe
