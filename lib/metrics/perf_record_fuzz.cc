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

// Twice every space outside of strings: the same JSON, but none that the parser
// guesses right.
std::string Spread(const std::string& line) {
  std::string spread;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\' && i + 1 < line.size()) {
      spread += line[i++];
      spread += line[i];
      continue;
    }
    spread += line[i];
    if (line[i] == '"') in_string = !in_string;
    if (line[i] == ' ' && !in_string) spread += ' ';
  }
  return spread;
}

std::string Outcome(const PerfRecordParser& parser,
                    const absl::StatusOr<PerfRecordKind>& kind) {
  if (!kind.ok()) return "refused";
  if (*kind == PerfRecordKind::kOther) return "other";
  return *kind == PerfRecordKind::kRequest ? ToJson(parser.request())
                                           : ToJson(parser.train_window());
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"kind": "request", "ts": 1795963655.1572874, "rank": 0, "world_size": 1, "req": 1, "warmup": false, "e2e_s": 0.23458596800000464, "stages": {"vae_dec": {"count": 1, "total_ms": 43.79, "mean_ms": 43.79, "std_ms": 0.0, "min_ms": 43.79, "max_ms": 43.79}}, "dit": {"params": 12, "tokens": 416, "batch": 2, "devices": 1, "flops_per_fwd": 2743656448.0, "attn_share": 0.25, "tflops": 0.07, "peak_tflops": null, "mfu": 7e-06}, "device": "cuda:0", "peak_alloc_bytes": 158754304, "peak_reserved_bytes": 195035136})",
      R"({"kind": "train_window", "ts": 1.5, "rank": 0, "world_size": 1, "step_first": 0, "step_last": 9, "steps": 7, "warmup_excluded": 3, "step_s_p50": 0.129, "step_s_p95": 0.149, "phases_s": {"data": 0.004, "other": 0.002}, "micro_steps": 2.0, "overrun_s": 0.0, "device": "cuda", "peak_alloc_bytes": 1, "peak_reserved_bytes": 2, "throughput": {"samples_per_s": 33.6, "samples": 4.0, "wall_s": 0.83, "dp": 1, "params": 1222848, "trainable": 1222848, "tokens": 34.2, "priced_steps": 7, "priced_s": 0.83, "flops_coef": 3.0, "flops_coef_hw": 3.0, "flops_coef_reason": "full", "flops_per_step": 1.0, "attn_share": 0.03, "devices": 1, "tflops": 0.008, "hw_tflops": 0.008, "peak_tflops": 989.0, "mfu": 8e-06, "hfu": 8e-06}, "eta_s": 11.6})",
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
  PerfRecordParser general;
  FF_CHECK(Outcome(parser, kind) ==
           Outcome(general, Parse(general, Spread(line))));
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
