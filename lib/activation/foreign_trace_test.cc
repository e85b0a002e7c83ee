#include "lib/activation/foreign_trace.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/activation/name_map.h"
#include "lib/activation/trace_input.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Normalized {
  absl::StatusOr<ForeignCounts> counts;
  std::vector<std::string> lines;
};

Normalized Normalize(absl::string_view text, TraceDialect dialect,
                     const ForeignOptions& options = {}) {
  Normalized out{ForeignCounts(), {}};
  out.counts =
      NormalizeTrace(text, dialect, options, [&](const std::string& line) {
        out.lines.push_back(line);
        return absl::OkStatus();
      });
  return out;
}

constexpr absl::string_view kMsprobe = R"({
  "task": "statistics", "level": "mix",
  "data": {
    "Module.blocks.0.attn.Linear.forward.0": {
      "input_args": [
        {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [2, 8],
         "Max": 3.5, "Min": -2.0, "Mean": 0.25, "Norm": 8.0}, null,
        {"type": "int", "value": 3}],
      "input_kwargs": {"mask": {"type": "torch.Tensor", "dtype": "torch.bool",
         "shape": [2], "Max": true, "Min": false, "Mean": null, "Norm": null}},
      "output": [{"type": "torch.Tensor", "dtype": "torch.float32",
         "shape": [4], "Max": NaN, "Min": 0.5, "Mean": 1.0, "Norm": 2.0}]},
    "Torch.matmul.3.forward": {
      "output": [{"type": "torch.Tensor", "dtype": "torch.float32",
         "shape": [1], "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}]},
    "Module.blocks.0.attn.Linear.backward.1": {"output": [null]}
  }
})";

TEST(Msprobe, NamesModulesAndApis) {
  const Normalized n = Normalize(kMsprobe, TraceDialect::kMsprobe);
  ASSERT_OK_AND_ASSIGN(const ForeignCounts counts, n.counts);
  EXPECT_EQ(counts.records, 3);
  EXPECT_EQ(counts.skipped, 1);  // the mask: no number
  EXPECT_THAT(
      n.lines,
      ElementsAre(
          R"({"module": "blocks.0.attn", "tensor": "in[0]", "step": null, )"
          R"("min": -2.0, "max": 3.5, "mean": 0.25, "rms": 2.0, "shape": )"
          R"([2, 8], "dtype": "torch.bfloat16", "stat_rel": 0.00390625})",
          R"({"module": "blocks.0.attn", "tensor": "out[0]", "step": null, )"
          R"("min": 0.5, "max": NaN, "mean": 1.0, "rms": 1.0, "shape": [4], )"
          R"("dtype": "torch.float32"})",
          R"({"module": "matmul", "tensor": "out[0]", "step": null, )"
          R"("min": 1.0, "max": 1.0, "mean": 1.0, "rms": 1.0, "shape": [1], )"
          R"("dtype": "torch.float32"})"));
}

TEST(Msprobe, SelectsLayersAndRefusesDamage) {
  ForeignOptions options;
  options.layers = "^matmul$";
  EXPECT_EQ(
      Normalize(kMsprobe, TraceDialect::kMsprobe, options).counts->records, 1);
  EXPECT_THAT(Normalize(R"({"a": 1})", TraceDialect::kMsprobe).counts,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no \"data\"")));
  for (size_t size = 0; size < kMsprobe.size(); size += 7) {
    EXPECT_FALSE(
        Normalize(kMsprobe.substr(0, size), TraceDialect::kMsprobe).counts.ok())
        << size;
  }
}

TEST(Sglang, TakesEitherSideOfAComparison) {
  constexpr absl::string_view kReport =
      R"({"type": "config", "x": 1})"
      "\n"
      R"({"type": "comparison_tensor", "name": "layers.0.out", "baseline": )"
      R"({"shape": [2, 3], "dtype": "torch.bfloat16", "stats": {"mean": 0.5, )"
      R"("abs_mean": 1.5, "std": 2.0, "min": -1, "max": 4, "p5": 0}}, )"
      R"("target": {"shape": [2, 3], "dtype": "torch.bfloat16", "stats": )"
      R"({"mean": 0.75}}})"
      "\n";
  const Normalized baseline = Normalize(kReport, TraceDialect::kSglang);
  EXPECT_THAT(baseline.lines,
              ElementsAre(R"({"module": "layers.0.out", "tensor": "out", )"
                          R"("step": null, "abs_mean": 1.5, "min": -1.0, )"
                          R"("max": 4.0, "mean": 0.5, "std": 2.0, )"
                          R"("shape": [2, 3], "dtype": "torch.bfloat16"})"));
  EXPECT_EQ(baseline.counts->skipped, 1);
  ForeignOptions target;
  target.target_side = true;
  EXPECT_THAT(Normalize(kReport, TraceDialect::kSglang, target).lines,
              ElementsAre(HasSubstr("\"mean\": 0.75")));
  EXPECT_THAT(Normalize("{\"type\"", TraceDialect::kSglang).counts,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line 1")));
}

TEST(TeLog, GroupsTheStatisticsOfATensor) {
  constexpr absl::string_view kLog =
      "INFO - decoder.1.attn_activation_min  \t\t iteration=000004 \t\t "
      "value=-1.2500\n"
      "INFO - decoder.1.attn_activation_max  \t\t iteration=000004 \t\t "
      "value=2.0000\n"
      "INFO - decoder.1.attn_weight_mean  \t\t iteration=000004 \t\t "
      "value=0.0000\n"
      "INFO - something else\n";
  const Normalized n = Normalize(kLog, TraceDialect::kTeLog);
  EXPECT_THAT(
      n.lines,
      ElementsAre(R"({"module": "decoder.1.attn", "tensor": "activation", )"
                  R"("step": 4, "stat_abs": 5e-05, "min": -1.25, "max": 2.0})",
                  R"({"module": "decoder.1.attn", "tensor": "weight", )"
                  R"("step": 4, "stat_abs": 5e-05, "mean": 0.0})"));
  EXPECT_EQ(n.counts->skipped, 1);
  EXPECT_FALSE(Normalize("nothing", TraceDialect::kTeLog).counts.ok());
}

TEST(Torchtitan, ReadsBlocks) {
  constexpr absl::string_view kLog =
      "[layers.0.attention/op_12_aten.mm.default]\n"
      "  Shape: [2, 4]\n  dtype: torch.bfloat16\n  Output hash: 1.600000e+01\n"
      "  min: -3.0\n  max = 5.0\n"
      "[layers.0.norm/op_13_aten.mul]\n  mean: 0.5\n";
  EXPECT_THAT(
      Normalize(kLog, TraceDialect::kTorchtitan).lines,
      ElementsAre(
          R"({"module": "layers.0.attention.aten.mm.default", "tensor": )"
          R"("out", "step": null, "abs_mean": 2.0, "min": -3.0, "max": 5.0, )"
          R"("shape": [2, 4], "dtype": "torch.bfloat16", "stat_rel": 5e-07})",
          R"({"module": "layers.0.norm.aten.mul", "tensor": "out", )"
          R"("step": null, "mean": 0.5, "stat_rel": 5e-07})"));
}

// Dumps of one network in testdata, and of the same with a wrong matrix.
std::string NormalizedFile(absl::string_view name, TraceDialect dialect,
                           bool target_side = false) {
  const TraceInput input = *TraceInput::Open(
      absl::StrCat("testdata/activation_trace/foreign/", name));
  const Normalized n =
      Normalize(input.text(), dialect, {.target_side = target_side});
  EXPECT_TRUE(n.counts.ok()) << n.counts.status();
  std::string text;
  for (const std::string& line : n.lines) absl::StrAppend(&text, line, "\n");
  return text;
}

std::string FirstDivergence(std::string left, std::string right) {
  const TraceInput a = *TraceInput::FromString(std::move(left), "left");
  const TraceInput b = *TraceInput::FromString(std::move(right), "right");
  const auto c = CompareTraces(a, b, {});
  EXPECT_TRUE(c.ok()) << c.status();
  EXPECT_THAT(c->trouble, ::testing::IsEmpty());
  return c->divergence.first ? DescribePlace(*c, *c->divergence.first) : "none";
}

struct DumpCase {
  TraceDialect dialect;
  const char* healthy;
  const char* bug;
  const char* place;
};

class Dumps : public ::testing::TestWithParam<DumpCase> {};

TEST_P(Dumps, TheWrongMatrixIsNamed) {
  const DumpCase& c = GetParam();
  const std::string healthy = NormalizedFile(c.healthy, c.dialect);
  const bool is_report = c.dialect == TraceDialect::kSglang;
  EXPECT_EQ(FirstDivergence(healthy, healthy), "none");
  EXPECT_EQ(
      FirstDivergence(healthy, NormalizedFile(c.bug, c.dialect, is_report)),
      c.place);
}

INSTANTIATE_TEST_SUITE_P(
    All, Dumps,
    ::testing::Values(
        DumpCase{TraceDialect::kTorchtitan, "torchtitan.log",
                 "torchtitan_bug.log", "layers.5.w2.mm"},
        DumpCase{TraceDialect::kTeLog, "transformer_engine.log",
                 "transformer_engine_bug.log",
                 "decoder.layers.5.w2 weight (step 3)"},
        DumpCase{TraceDialect::kMsprobe, "msprobe.json", "msprobe_bug.json",
                 "layers.5.w2 out[0]"},
        // Checksums tell the first other bit alone, here another rounding's.
        DumpCase{TraceDialect::kMsprobe, "msprobe_md5.json",
                 "msprobe_md5_bug.json", "layers.0.w2 out[0]"},
        DumpCase{TraceDialect::kSglang, "sglang.jsonl", "sglang.jsonl",
                 "layers.5.w2 (step 3)"}));

// What two tools say of one tensor agrees as far as the coarser one prints.
TEST(Dumps, AgreeWithEachOther) {
  std::string text =
      NormalizedFile("torchtitan.log", TraceDialect::kTorchtitan);
  const TraceInput titan = *TraceInput::FromString(std::move(text), "titan");
  text = NormalizedFile("sglang.jsonl", TraceDialect::kSglang);
  const TraceInput sglang = *TraceInput::FromString(std::move(text), "sglang");
  const NameMap map =
      *NameMap::Parse("^layers\\.(\\d+)\\.(w\\d)\\.mm$ => layers.\\1.\\2");
  CompareOptions options;
  options.align.map_a = &map;
  const auto c = CompareTraces(titan, sglang, options);
  EXPECT_EQ(c->alignment.pairs.size(), 16u);
  EXPECT_EQ(c->verdict, Verdict::kSame) << Explain(*c);
}

TEST(NormalizedTrace, ComparesWithinItsPrecision) {
  // 8-bit statistics: 0.3 % apart is nothing; the same in float32 fires.
  const auto trace = [](const char* mean, const char* extra) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      absl::StrAppend(
          &text, "{\"module\": \"l.", i,
          "\", \"tensor\": \"out\", \"step\": null, \"mean\": ", mean,
          ", \"rms\": 1.0, \"shape\": [64], \"dtype\": "
          "\"torch.float32\"",
          extra, "}\n");
    }
    return *TraceInput::FromString(text, "t");
  };
  constexpr const char* kCoarse = ", \"stat_rel\": 0.00390625";
  const TraceInput a = trace("0.5", kCoarse), b = trace("0.503", kCoarse);
  EXPECT_EQ(CompareTraces(a, b, {})->verdict, Verdict::kSame);
  const TraceInput c = trace("0.5", ""), d = trace("0.503", "");
  EXPECT_EQ(CompareTraces(c, d, {})->verdict, Verdict::kDiffer);
}

TEST(ParseTraceDialect, NamesTheDialects) {
  EXPECT_THAT(ParseTraceDialect("csv"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected msprobe, sglang")));
}

}  // namespace
}  // namespace firstframe
