// Whatever a line holds, the parser answers, and what it accepts it can write
// and read again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/jsonl_reader.h"
#include "lib/metrics/perf_record_reader.h"

namespace {

using ::firstframe::kJsonlPadding;
using ::firstframe::PerfRecordKind;
using ::firstframe::PerfRecordParser;

absl::StatusOr<PerfRecordKind> Parse(PerfRecordParser& parser,
                                     const std::string& line) {
  std::string padded = line;
  padded.push_back('\n');
  padded.append(kJsonlPadding, '\0');
  return parser.Parse(absl::string_view(padded.data(), line.size()));
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"kind":"request","ts":1795963654.92,"req":0,"warmup":true,"e2e_s":1.5,"stages":{"transformer":{"count":4,"total_ms":1072.25,"std_ms":0.0}},"dit":{"params":12,"mfu":7.26e-06},"device":"cuda:0"})",
      R"({"kind":"train_window","step_first":0,"phases_s":{"data":0.004,"bwd":NaN},"throughput":{"dp":1,"params":3,"flops_coef_reason":"full \"x\""},"eta_s":11.6})",
      R"({"a":[{"b":null}],"kind":"other"})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string line(reinterpret_cast<const char*>(data), size);
  // A line holds no line end.
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  PerfRecordParser parser;
  const auto kind = Parse(parser, line);
  if (!kind.ok() || *kind == PerfRecordKind::kOther) return 0;
  const bool is_request = *kind == PerfRecordKind::kRequest;
  const std::string written =
      is_request ? ToJson(parser.request()) : ToJson(parser.train_window());
  static_cast<void>(is_request ? FormatRequest("", parser.request())
                               : FormatTrainWindow("", parser.train_window()));
  PerfRecordParser again;
  const auto second = Parse(again, written);
  FF_CHECK(second.ok() && *second == *kind);
  return 0;
}
