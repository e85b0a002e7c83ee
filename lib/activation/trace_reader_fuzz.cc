// Two traces in one input, divided by the first NUL, through everything that
// trace_diff does with them.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "lib/activation/compare.h"
#include "lib/activation/report.h"
#include "lib/activation/trace_input.h"

namespace firstframe {
namespace {

void CompareBoth(const std::string& left, const std::string& right) {
  const auto a = TraceInput::FromString(left, "a");
  const auto b = TraceInput::FromString(right, "b");
  if (!a.ok() || !b.ok()) return;
  const auto comparison = CompareTraces(*a, *b, {});
  if (!comparison.ok()) return;
  std::ostringstream out;
  WriteText(*comparison, {}, out);
  WriteJsonl(*comparison, {.rows = 10, .all_rows = true}, out);
  WriteGithub(*comparison, out);
  RenderHtml(*comparison);
}

}  // namespace
}  // namespace firstframe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\0');
  if (cut == std::string::npos) {
    firstframe::CompareBoth(text, text);
  } else {
    firstframe::CompareBoth(text.substr(0, cut), text.substr(cut + 1));
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  const std::string record =
      "{\"module\": \"blocks.3.attn\", \"tensor\": \"out[0]\", \"step\": 2, "
      "\"rank\": 1, \"abs_mean\": 0.4614652991294861, \"sum\": NaN, \"max\": "
      "-Infinity, \"std\": \"<error: RuntimeError('x')>\", \"shape\": [1, 64], "
      "\"dtype\": \"torch.bfloat16\", \"h_set\": \"00ff\", \"h_pos\": 7, "
      "\"exp_hist\": [[120, 5]], \"nan\": 3}\n";
  return {
      record,
      record + record + "{\"trace_header\": {\"version\": 1}}\n" + record,
      record + std::string(1, '\0') + "{\"module\":\"a\",\"st" + record,
  };
}
