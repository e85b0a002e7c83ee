// A dump of another tool, behind one byte that chooses the dialect. What comes
// out of it must be a trace that reads without damage.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/activation/foreign_trace.h"
#include "lib/activation/trace_reader.h"
#include "lib/base/check.h"

namespace firstframe {
namespace {

constexpr TraceDialect kDialects[] = {
    TraceDialect::kMsprobe, TraceDialect::kSglang, TraceDialect::kTeLog,
    TraceDialect::kTorchtitan};

void Normalize(TraceDialect dialect, absl::string_view text) {
  std::string lines;
  int64_t emitted = 0;
  const auto counts =
      NormalizeTrace(text, dialect, {}, [&](const std::string& line) {
        lines += line + "\n";
        ++emitted;
        return absl::OkStatus();
      });
  if (counts.ok()) FF_CHECK(counts->records == emitted);
  TraceNames names;
  const TraceTable table = ReadTrace(lines, "normalized", &names);
  if (!table.damage.IsClean() || table.damage.glued != 0 ||
      static_cast<int64_t>(table.rows.size()) != emitted) {
    std::fprintf(stderr, "not a sound trace:\n%s", lines.c_str());
    std::abort();
  }
}

}  // namespace
}  // namespace firstframe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  firstframe::Normalize(
      firstframe::kDialects[data[0] % 4],
      absl::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {
      R"(0{"data": {"Module.a.b.Linear.forward.0": {"output": [{"type": )"
      R"("torch.Tensor", "shape": [4], "Max": 1, "Norm": 2.0}]}}})",
      R"(0{"data": {"Module.a.Linear.forward.1": {"input_args": [{"Mean": )"
      R"(NaN}], "input_kwargs": {"x": {"Min": -1e400}}, "output": []}}})",
      R"(1{"type": "comparison_tensor", "name": "x", "baseline": {"stats": )"
      R"({"mean": 1}, "shape": [2]}})",
      "2l.1_activation_min iteration=000001 value=1.0\n",
      "3[a.0/op_1_aten.mm]\n  Shape: [2]\n  hash: 3\n",
  };
}
