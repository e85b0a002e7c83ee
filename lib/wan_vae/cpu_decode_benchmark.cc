// Decodes on the CPU beside the rate of a plain float32 matrix product on the
// same threads in the same run.
//
//   BM_Sgemm/n              oneDNN's sgemm, n x n x n
//   BM_Matmul/n             oneDNN's matmul with weights in the layout it likes
//   BM_Decode/preset/T/h/w  one decode; gflop_per_s counts what was computed,
//                           flop_share what that is of torch's FlopCounterMode
//
// Presets: 0 tiny, 1 small, 2 wan21.

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "dnnl.hpp"
#include "lib/base/check.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

constexpr const char* kPresets[] = {"tiny", "small", "wan21"};

CpuWanVae& Model(int preset) {
  static auto* const models = new std::map<int, std::unique_ptr<CpuWanVae>>;
  std::unique_ptr<CpuWanVae>& model = (*models)[preset];
  if (model != nullptr) return *model;
  model = *BuildCpuWanVae(*WanVaePreset(kPresets[preset]), {});
  FF_CHECK(model->AllocateParameters().ok());
  const auto& parameters = model->tree().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    FloatTensor value = {.shape = parameters[i].shape};
    value.values.resize(*CheckedNumElements(value.shape));
    FillSynthetic(parameters[i].name, value.shape, 0,
                  absl::MakeSpan(value.values));
    FF_CHECK(model->AssignParameter(static_cast<int>(i), ViewOf(value)).ok());
  }
  FF_CHECK(model->Finalize().ok());
  return *model;
}

void BM_Sgemm(benchmark::State& state) {
  const int64_t n = state.range(0);
  const std::vector<float> a(n * n, 1.0f), b(n * n, 1.0f);
  std::vector<float> c(n * n);
  for (auto _ : state) {
    FF_CHECK(dnnl_sgemm('N', 'N', n, n, n, 1.0f, a.data(), n, b.data(), n, 0.0f,
                        c.data(), n) == dnnl_success);
    benchmark::DoNotOptimize(c.data());
  }
  state.counters["gflop_per_s"] = benchmark::Counter(
      2e-9 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Sgemm)->Arg(2048)->Arg(4096)->UseRealTime()->MinTime(1);

void BM_Matmul(benchmark::State& state) {
  using dnnl::memory;
  const int64_t n = state.range(0);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto desc = [&](memory::format_tag tag) {
    return memory::desc({n, n}, memory::data_type::f32, tag);
  };
  const dnnl::matmul::primitive_desc primitive_desc(
      dnnl::matmul::desc(desc(memory::format_tag::ab),
                         desc(memory::format_tag::any),
                         desc(memory::format_tag::ab)),
      engine);
  const dnnl::matmul matmul(primitive_desc);
  memory a(primitive_desc.src_desc(), engine);
  memory b(primitive_desc.weights_desc(), engine);
  memory c(primitive_desc.dst_desc(), engine);
  for (memory* m : {&a, &b}) {
    float* data = static_cast<float*>(m->get_data_handle());
    std::fill(data, data + m->get_desc().get_size() / sizeof(float), 1.0f);
  }
  for (auto _ : state) {
    matmul.execute(
        stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
  state.counters["gflop_per_s"] = benchmark::Counter(
      2e-9 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Matmul)->Arg(2048)->UseRealTime()->MinTime(1);

// torch's count for 1x16x3x6x10 with the published model, from
// testdata/wan_vae/README.md.
constexpr double kTorchFlops = 300716328960.0;

void BM_Decode(benchmark::State& state) {
  CpuWanVae& model = Model(static_cast<int>(state.range(0)));
  FloatTensor latent = {
      .shape = {1, 16, state.range(1), state.range(2), state.range(3)}};
  latent.values.resize(*CheckedNumElements(latent.shape));
  FillSynthetic("latent", latent.shape, 0, absl::MakeSpan(latent.values));
  FF_CHECK(model.Decode(ViewOf(latent), {}).ok());  // makes the primitives
  for (auto _ : state) {
    auto sample = model.Decode(ViewOf(latent), {});
    FF_CHECK(sample.ok());
    benchmark::DoNotOptimize(sample->values.data());
  }
  const double flops = static_cast<double>(model.LastRunFlops());
  state.counters["gflop_per_s"] = benchmark::Counter(
      1e-9 * flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["gflop"] = 1e-9 * flops;
  state.counters["workspace_mb"] =
      1e-6 * static_cast<double>(model.WorkspaceBytes());
  if (state.range(0) == 2 && state.range(1) == 3 && state.range(2) == 6 &&
      state.range(3) == 10) {
    state.counters["flop_share"] = flops / kTorchFlops;
  }
}
BENCHMARK(BM_Decode)
    ->Args({0, 3, 2, 2})
    ->Args({1, 3, 4, 6})
    ->Args({2, 3, 6, 10})
    ->Args({2, 3, 30, 52})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
