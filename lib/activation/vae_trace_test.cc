// Our own VAE, traced, against what FastVideo's hook saw of diffusers' one.

#include "lib/activation/vae_trace.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/activation/trace_options.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/synthetic.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<CpuWanVae> SmallVae() {
  auto model = *BuildCpuWanVae(*WanVaePreset("small"), {});
  EXPECT_THAT(model->AllocateParameters(), testing::IsOk());
  const auto& parameters = model->tree().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    FloatTensor tensor = {.shape = parameters[i].shape};
    tensor.values.resize(*CheckedNumElements(tensor.shape));
    FillSynthetic(parameters[i].name, tensor.shape, 0,
                  absl::MakeSpan(tensor.values));
    EXPECT_THAT(model->AssignParameter(static_cast<int>(i), ViewOf(tensor)),
                testing::IsOk());
  }
  EXPECT_THAT(model->Finalize(), testing::IsOk());
  return model;
}

FloatTensor FirstLatent() {
  FloatTensor latent =
      testing::ReadGoldenTensors("small_golden.safetensors").at("latent");
  latent.values.resize(latent.values.size() / latent.shape[0]);
  latent.shape[0] = 1;
  return latent;
}

TraceEnvironment Environment(const std::string& path, const char* stats) {
  TraceEnvironment environment;
  environment.activations = "1";
  environment.stats = stats;
  environment.output = path;
  return environment;
}

std::string TraceDecode(const testing::TempDir& dir, const char* stats) {
  const std::string path = dir.File("trace.jsonl");
  const TraceOptions options = *ResolveTraceOptions(Environment(path, stats));
  const auto tracer = *ActivationTracer::Create(options, 1);
  const auto model = SmallVae();
  VaeTrace trace(tracer.get(), model->tree());
  EXPECT_THAT(trace.attached_message(), HasSubstr("attached to "));
  EXPECT_THAT(model->Decode(ViewOf(FirstLatent()), {.observer = &trace}),
              testing::IsOk());
  EXPECT_THAT(trace.Flush(), testing::IsOk());
  return path;
}

TEST(VaeTrace, IsCleanAgainstTheGoldenTraces) {
  const testing::TempDir dir;
  const std::string path =
      TraceDecode(dir, "abs_mean,sum,min,max,mean,std,shape,dtype");
  for (const char* golden : {"cpu_fp32", "gpu_fp32", "cpu_fp64", "gpu_bf16"}) {
    SCOPED_TRACE(golden);
    ASSERT_OK_AND_ASSIGN(const TraceInput ours, TraceInput::Open(path));
    ASSERT_OK_AND_ASSIGN(
        const TraceInput theirs,
        TraceInput::Open(absl::StrCat("testdata/activation_trace/trace_",
                                      golden, ".jsonl.gz")));
    ASSERT_OK_AND_ASSIGN(const Comparison c, CompareTraces(theirs, ours, {}));
    EXPECT_THAT(c.trouble, IsEmpty());
    EXPECT_EQ(c.verdict, Verdict::kSame) << Explain(c);
    EXPECT_EQ(c.alignment.pairs.size(), 461u);
  }
  // and the trace with the scaled convolution is not
  ASSERT_OK_AND_ASSIGN(const TraceInput ours, TraceInput::Open(path));
  ASSERT_OK_AND_ASSIGN(
      const TraceInput bug,
      TraceInput::Open("testdata/activation_trace/"
                       "trace_gpu_fp32_bug_conv1_2pct.jsonl.gz"));
  ASSERT_OK_AND_ASSIGN(const Comparison c, CompareTraces(ours, bug, {}));
  ASSERT_TRUE(c.divergence.first.has_value());
  EXPECT_EQ(DescribePlace(c, *c.divergence.first),
            "decoder.up_blocks.1.resnets.0.conv1");
}

TEST(VaeTrace, ANameThatSelectsNothingIsReported) {
  const testing::TempDir dir;
  TraceEnvironment environment = Environment(dir.File("t.jsonl"), "sum");
  environment.layers = "decoder.conv_on$";
  const auto tracer =
      *ActivationTracer::Create(*ResolveTraceOptions(environment), 1);
  const auto model = SmallVae();
  VaeTrace trace(tracer.get(), model->tree());
  EXPECT_THAT(trace.attached_message(),
              HasSubstr("no module name matches: try 'decoder.conv_in'"));
  EXPECT_FALSE(trace.Wants(model->tree().modules.back()));
}

}  // namespace
}  // namespace firstframe
