// JSON and protobuf say the same: each report goes through both and comes back.

#include "lib/phase/phase_proto.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/phase/phase_json.h"
#include "lib/phase/phase_test_report.h"
#include "lib/testing/status_matchers.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

std::string ToJson(const PhaseReport& report) {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  WritePhaseReportKeys(report, json);
  json.EndObject();
  return text;
}

TEST(PhaseFormats, JsonAndProtoReadBackTheSame) {
  PhaseReport report = MakePhaseTestReport();
  // What neither can hold as it is becomes U+FFFD in both.
  PhaseReport repaired = report;
  repaired.phases[3].error =
      "model.safetensors: \"short\" read\n</script>\xEF\xBF\xBD";

  ASSERT_OK_AND_ASSIGN(const PhaseReport from_json,
                       ParsePhaseReport(ToJson(report)));
  EXPECT_EQ(from_json, repaired);
  proto::PhaseReport decoded;
  ASSERT_TRUE(decoded.ParseFromString(ToProto(report).SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const PhaseReport from_proto, FromProto(decoded));
  EXPECT_EQ(from_proto, repaired);
  // Across: JSON of what came from the proto, proto of what came from JSON.
  EXPECT_EQ(ToJson(from_proto), ToJson(from_json));
  EXPECT_EQ(ToProto(from_json).SerializeAsString(),
            ToProto(from_proto).SerializeAsString());
}

std::set<std::string> FieldNames(const google::protobuf::Descriptor& message) {
  std::set<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    names.insert(message.field(i)->name());
  }
  return names;
}

std::set<std::string> KeyNames(simdjson::dom::object object) {
  std::set<std::string> names;
  for (const auto& field : object) names.emplace(field.key);
  return names;
}

TEST(PhaseFormats, TheKeysAreTheFieldNames) {
  simdjson::dom::parser parser;
  const std::string text = ToJson(MakePhaseTestReport());
  simdjson::dom::object root = parser.parse(text).get_object();
  EXPECT_EQ(KeyNames(root), FieldNames(*proto::PhaseReport::descriptor()));
  EXPECT_EQ(KeyNames(root["lanes"].at(0)),
            FieldNames(*proto::PhaseLane::descriptor()));
  std::set<std::string> keys = KeyNames(root["phases"].at(3));
  EXPECT_EQ(keys, FieldNames(*proto::PhaseRecord::descriptor()));
}

TEST(PhaseJson, RefusesWhatIsNotAReport) {
  const std::string good = ToJson(MakePhaseTestReport());
  ASSERT_THAT(ParsePhaseReport(good), testing::IsOk());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(ParsePhaseReport(good.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not JSON")));
  }
  const struct {
    const char* json;
    const char* message;
  } cases[] = {
      {"[]", "phase report: found [], expected an object"},
      {"{}", "recording_duration_ns: found no such key, expected an integer"},
      {R"({"recording_duration_ns":1})", "phases: found no such key"},
      {R"({"recording_duration_ns":-1,"phases":[]})", "found -1"},
      {R"({"recording_duration_ns":1e3,"phases":[]})", "found 1000"},
      {R"({"recording_duration_ns":1,"phases":[7]})", "phases[0].: found 7"},
      {R"({"recording_duration_ns":1,"lanes":[{}],"phases":[]})",
       "lanes[0].name: found no such key"},
      {R"({"recording_duration_ns":1,"phases":[{"id":0,"parent_id":"x"}]})",
       "phases[0].parent_id: found \"x\", expected an integer"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_THAT(ParsePhaseReport(json),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(message)));
  }
}

TEST(PhaseJson, ChecksIdsStatusLanesAndTimes) {
  const auto parse = [](absl::string_view change) {
    return ParsePhaseReport(absl::StrCat(
        R"({"recording_duration_ns":1,"phases":[)"
        R"({"id":0,"name":"a","start_offset_ns":0,"duration_ns":1,"status":"ok"},)"
        R"({"id":1,"name":"b","start_offset_ns":0,)",
        change, "}]}"));
  };
  EXPECT_THAT(parse(R"("duration_ns":1,"status":"ok","later":[1])"),
              testing::IsOk());
  EXPECT_THAT(parse(R"("duration_ns":-1,"status":"ok")").status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("phases[1].duration_ns: found -1")));
  EXPECT_THAT(
      parse(R"("duration_ns":9223372036854775807,"status":"ok")"),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("expected from 0")));
  EXPECT_THAT(parse(R"("duration_ns":1,"status":"fine")"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("found 'fine', expected 'ok' or 'error'")));
  EXPECT_THAT(
      parse(R"("duration_ns":1,"status":"ok","lane":1)"),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("phases[1].lane: found 1, expected one of 1")));
  EXPECT_THAT(parse(R"("duration_ns":1,"status":"ok","parent_id":9)"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("phase 1 parent_id: found 9")));
}

TEST(PhaseProto, RefusesAStatusItDoesNotKnow) {
  proto::PhaseReport report;
  report.add_phases()->set_id(4);
  EXPECT_THAT(FromProto(report),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("phase 4")));
}

}  // namespace
}  // namespace firstframe
