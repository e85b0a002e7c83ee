// What a phase costs: where nothing collects, and recorded.
//
// BM_Disabled's loop holds one phase and nothing else; BM_EmptyLoop is what to
// take off. BM_Enabled includes two readings of the clock, which
// BM_TwoClockReadings shows alone.

#include <memory>

#include "benchmark/benchmark.h"
#include "lib/phase/phase.h"

namespace firstframe {
namespace {

void BM_EmptyLoop(benchmark::State& state) {
  for (auto _ : state) benchmark::ClobberMemory();
}
BENCHMARK(BM_EmptyLoop);

void BM_Disabled(benchmark::State& state) {
  for (auto _ : state) {
    ScopedPhase phase("decode");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Disabled);

void BM_DisabledRunPhase(benchmark::State& state) {
  for (auto _ : state) {
    absl::Status status = RunPhase("decode", [] { return absl::OkStatus(); });
    benchmark::DoNotOptimize(status);
  }
}
BENCHMARK(BM_DisabledRunPhase);

void BM_TwoClockReadings(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(MonotonicClock::Get().NowNs());
    benchmark::DoNotOptimize(MonotonicClock::Get().NowNs());
  }
}
BENCHMARK(BM_TwoClockReadings);

// The log grows as in a real run: a new one each 2^16 phases, outside the
// timing.
void BM_Enabled(benchmark::State& state) {
  int left = 0;
  std::unique_ptr<PhaseRecorder> recorder;
  std::unique_ptr<PhaseCollector> collector;
  for (auto _ : state) {
    if (left-- == 0) {
      state.PauseTiming();
      collector.reset();
      recorder = std::make_unique<PhaseRecorder>();
      collector = std::make_unique<PhaseCollector>(recorder.get());
      left = 1 << 16;
      state.ResumeTiming();
    }
    ScopedPhase phase("decoder.up_blocks.0.resnets.1.conv1");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Enabled);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
