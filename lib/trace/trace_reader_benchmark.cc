// How fast a trace is read, in unpacked bytes a second on one core.
//
//   bazel run //lib/trace:trace_reader_benchmark
//
// Reads a synthetic trace in Kineto's layout from the page cache.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

std::string WriteTrace(int events) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp",
                                        "/trace_reader_benchmark.json");
  std::string text = "{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n";
  for (int i = 0; i < events; ++i) {
    absl::StrAppend(
        &text,
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
        "\"aten::copy_\", \"pid\": 514, \"tid\": 514,\n    \"ts\": ",
        5106602237299 + i,
        ".781, \"dur\": 21.916,\n    \"args\": {\n      "
        "\"External id\": ",
        i,
        ",\"Record function id\": 0, \"Input Dims\": "
        "[[16, 3, 3, 3, 3], []], \"Ev Idx\": ",
        i, "\n    }\n  },\n");
  }
  text += "  {\"ph\": \"i\", \"name\": \"end\", \"ts\": 1}\n  ]\n}\n";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

void BM_ReadJson(benchmark::State& state) {
  const std::string path = WriteTrace(static_cast<int>(state.range(0)));
  int64_t bytes = 0;
  for (auto _ : state) {
    auto reader = TraceReader::Open(path);
    if (!reader.ok()) {
      state.SkipWithError("cannot open the trace");
      break;
    }
    for (TraceEvent event; *(*reader)->Next(&event);) {
      benchmark::DoNotOptimize(event.time_ns);
    }
    bytes += static_cast<int64_t>((*reader)->info().unpacked_bytes);
  }
  state.SetBytesProcessed(bytes);
  std::remove(path.c_str());
}
BENCHMARK(BM_ReadJson)->Arg(100)->Arg(100000);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
