// Reads a file of request records as perf_report does: lines and parsing.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "lib/base/check.h"
#include "lib/base/jsonl_reader.h"
#include "lib/metrics/perf_record_reader.h"

namespace firstframe {
namespace {

// Numbers with as many digits as json.dumps gives them.
std::string Record(int i) {
  std::string text;
  char number[64];
  const auto value = [&](double scale) {
    std::snprintf(number, sizeof number, "%.17g", scale * (1 + i % 97) / 3.0);
    return std::string(number);
  };
  text = "{\"kind\": \"request\", \"ts\": " + value(538392) +
         ", \"rank\": 0, \"world_size\": 1, \"req\": " + std::to_string(i) +
         ", \"warmup\": false, \"e2e_s\": " + value(0.2) + ", \"stages\": {";
  for (const char* stage : {"text_encoder", "transformer", "vae_dec"}) {
    text += "\"" + std::string(stage) +
            "\": {\"count\": 5, \"total_ms\": " + value(185) +
            ", \"mean_ms\": " + value(37) + ", \"std_ms\": " + value(63) +
            ", \"min_ms\": " + value(7) + ", \"max_ms\": " + value(151) + "}, ";
  }
  text.resize(text.size() - 2);
  return text +
         "}, \"dit\": {\"params\": 1222848, \"tokens\": 416, \"batch\": 2,"
         " \"devices\": 1, \"flops_per_fwd\": 2743656448.0, "
         "\"attn_share\": " +
         value(0.25) + ", \"tflops\": " + value(0.07) +
         ", \"peak_tflops\": 989.0, \"mfu\": " + value(7e-5) +
         "}, \"device\": \"cuda:0\", \"peak_alloc_bytes\": 158754304, "
         "\"peak_reserved_bytes\": 195035136}\n";
}

std::string WriteRecords() {
  const std::string path = "/tmp/firstframe_perf_record_benchmark.jsonl";
  std::ofstream file(path);
  for (int i = 0; i < 30000; ++i) file << Record(i);
  return path;
}

void BM_ReadRecords(benchmark::State& state) {
  const std::string path = WriteRecords();
  int64_t bytes = 0;
  PerfRecordParser parser;
  double total = 0;
  for (auto _ : state) {
    auto reader = JsonlReader::Open(path);
    FF_CHECK(reader.ok());
    while (true) {
      const auto line = reader->Next();
      FF_CHECK(line.ok());
      if (!line->has_value()) break;
      FF_CHECK(parser.Parse((*line)->text).ok());
      total += parser.request().e2e_s;
    }
    bytes += reader->bytes_read();
  }
  benchmark::DoNotOptimize(total);
  state.SetBytesProcessed(bytes);
  std::remove(path.c_str());
}
BENCHMARK(BM_ReadRecords)->Unit(benchmark::kMillisecond);

// The share of reading and splitting.
void BM_SplitLines(benchmark::State& state) {
  const std::string path = WriteRecords();
  int64_t bytes = 0;
  for (auto _ : state) {
    auto reader = JsonlReader::Open(path);
    FF_CHECK(reader.ok());
    int64_t lines = 0;
    while (reader->Next()->has_value()) ++lines;
    benchmark::DoNotOptimize(lines);
    bytes += reader->bytes_read();
  }
  state.SetBytesProcessed(bytes);
  std::remove(path.c_str());
}
BENCHMARK(BM_SplitLines)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
