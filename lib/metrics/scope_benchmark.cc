// What a stage costs: with metrics off, and on with the host clock alone.

#include <benchmark/benchmark.h>

#include <memory>

#include "lib/metrics/request_recorder.h"

namespace firstframe {
namespace {

void BM_DisabledStage(benchmark::State& state) {
  for (auto _ : state) {
    StageScope stage("transformer");
    benchmark::DoNotOptimize(&stage);
  }
}
BENCHMARK(BM_DisabledStage);

// Requests of 1000 stages, so that vectors grow as they do in use; the end of
// the request is left out of the time.
void BM_HostStage(benchmark::State& state) {
  constexpr int kStages = 1000;
  PerfSink sink(PerfSettings{.level = 1}, nullptr);
  MarkerSource markers;
  RequestRecorder recorder(sink, markers);
  while (state.KeepRunningBatch(kStages)) {
    state.PauseTiming();
    auto request = std::make_unique<RequestScope>(recorder);
    state.ResumeTiming();
    for (int i = 0; i < kStages; ++i) {
      StageScope stage("transformer");
      stage.SetShape(32760, 2);
    }
    state.PauseTiming();
    request.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_HostStage);

// The floor of the row above.
void BM_TwoClockReadings(benchmark::State& state) {
  const Clock& clock = MonotonicClock::Get();
  for (auto _ : state) {
    benchmark::DoNotOptimize(clock.NowNs());
    benchmark::DoNotOptimize(clock.NowNs());
  }
}
BENCHMARK(BM_TwoClockReadings);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
