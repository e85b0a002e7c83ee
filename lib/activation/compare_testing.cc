#include "lib/activation/compare_testing.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/activation/python_json.h"

namespace firstframe::testing {

TraceInput GoldenTrace(absl::string_view name) {
  return *TraceInput::Open(
      absl::StrCat("testdata/activation_trace/trace_", name, ".jsonl.gz"));
}

std::unique_ptr<Compared> Compare(TraceInput a, TraceInput b,
                                  const CompareOptions& options) {
  auto out = std::make_unique<Compared>(
      Compared{std::move(a), std::move(b), Comparison()});
  out->result = *CompareTraces(out->a, out->b, options);
  return out;
}

std::unique_ptr<Compared> CompareText(std::string a, std::string b,
                                      const CompareOptions& options) {
  return Compare(*TraceInput::FromString(std::move(a), "a"),
                 *TraceInput::FromString(std::move(b), "b"), options);
}

std::string FirstOf(const Comparison& c) {
  return c.divergence.first ? DescribePlace(c, *c.divergence.first) : "none";
}

std::string ToyTrace(const std::function<void(Toy&)>& change, int layers,
                     const std::string& step, uint32_t noise_seed) {
  std::mt19937 random(noise_seed);
  std::normal_distribution<double> noise(0, 3e-4);
  std::string text;
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* op : {".norm", ".attn", ".mlp", ""}) {
      Toy toy;
      toy.module = absl::StrCat("blocks.", layer, op);
      toy.step = step;
      toy.abs_mean = 1 + 0.07 * layer + 0.1 * std::string(op).size();
      if (noise_seed != 0) toy.abs_mean *= 1 + noise(random);
      if (change) change(toy);
      if (toy.omit) continue;
      std::string line = absl::StrCat(
          "{\"module\": \"", toy.module, "\", \"tensor\": \"", toy.tensor,
          "\", \"step\": ", toy.step, ", \"abs_mean\": ");
      AppendPythonFloat(static_cast<float>(toy.abs_mean), &line);
      line += ", \"mean\": ";
      AppendPythonFloat(static_cast<float>(toy.mean), &line);
      line += ", \"std\": ";
      AppendPythonFloat(static_cast<float>(toy.std), &line);
      absl::StrAppend(&text, line, ", \"shape\": ", toy.shape,
                      ", \"dtype\": \"", toy.dtype, "\"", toy.extra, "}\n");
    }
  }
  return text;
}

}  // namespace firstframe::testing
