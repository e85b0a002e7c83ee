// What recording costs on one core.
//
//   bazel run //lib/profiler:profiler_benchmark
//
// Targets: disabled span 2 ns, enabled span 50 ns, region with NVTX 100 ns.

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "lib/profiler/profiler.h"
#include "lib/profiler/tick_clock.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"

namespace firstframe {
namespace {

void BM_SpanDisabled(benchmark::State& state) {
  for (auto _ : state) {
    FF_PROFILE_SPAN("disabled");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_SpanDisabled);

void BM_RegionDisabled(benchmark::State& state) {
  for (auto _ : state) {
    FF_PROFILE_REGION("model_loading");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_RegionDisabled);

void BM_TickClock(benchmark::State& state) {
  const TickClock clock(TickClock::CounterIsReliable());
  for (auto _ : state) benchmark::DoNotOptimize(clock.Now());
}
BENCHMARK(BM_TickClock);

void StartProfiler() {
  const char* const folder = std::getenv("TEST_TMPDIR");
  ProfilerOptions options;
  options.session.dir =
      absl::StrCat(folder != nullptr ? folder : "/tmp", "/profiler_benchmark");
  options.session.regions =
      RegionSelection::Parse("model_loading", RegionRegistry::Default());
  options.session.collect_gpu = false;
  // The file is not what is measured; past this, spans are still taken.
  options.session.max_bytes = 1 << 20;
  static_cast<void>(Profiler::Start(std::move(options)));
}

void BM_SpanEnabled(benchmark::State& state) {
  StartProfiler();
  FF_PROFILE_REGION("model_loading");
  for (auto _ : state) {
    FF_PROFILE_SPAN("enabled");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_SpanEnabled);

// Opens and closes collection each time.
void BM_RegionEnabledWithNvtx(benchmark::State& state) {
  StartProfiler();
  for (auto _ : state) {
    FF_PROFILE_REGION("model_loading");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_RegionEnabledWithNvtx);

// Inside another region: collection stays on.
void BM_NestedRegionEnabledWithNvtx(benchmark::State& state) {
  StartProfiler();
  FF_PROFILE_REGION("model_loading");
  for (auto _ : state) {
    FF_PROFILE_REGION("model_loading");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_NestedRegionEnabledWithNvtx);

void BM_SpanNotCollecting(benchmark::State& state) {
  StartProfiler();
  for (auto _ : state) {
    FF_PROFILE_SPAN("outside");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_SpanNotCollecting);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
