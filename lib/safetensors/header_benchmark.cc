// Header parsing in MB/s, and a checkpoint of many shards checked per second.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/sharded_writer.h"

namespace firstframe {
namespace {

std::vector<TensorSpec> TransformerSpecs(int64_t tensors) {
  std::vector<TensorSpec> specs;
  for (int64_t i = 0; i < tensors; ++i) {
    specs.push_back({absl::StrCat("transformer_blocks.", i / 8, ".attn.to_q.",
                                  i % 8, ".weight"),
                     DType::kBF16,
                     {i % 5 + 1, 3}});
  }
  return specs;
}

// Header parsing alone, of a file as diffusers writes it.
void BM_ParseHeader(benchmark::State& state) {
  const auto plan =
      PlanSafetensors(TransformerSpecs(state.range(0)), {{"format", "pt"}});
  const std::string& prefix = plan->prefix;
  const uint64_t size = prefix.size() + plan->data_size;
  for (auto _ : state) {
    auto header = ParseSafetensorsHeader("f", prefix, size);
    if (!header.ok()) state.SkipWithError("the header was refused");
    benchmark::DoNotOptimize(header);
  }
  state.SetBytesProcessed(state.iterations() * prefix.size());
}
BENCHMARK(BM_ParseHeader)->Arg(330)->Arg(20'000)->Arg(500'000);

// Opens and checks an index with `range` shards of 8 tensors each, page cache
// warm.
void BM_OpenShards(benchmark::State& state) {
  const char* root = std::getenv("TEST_TMPDIR");
  std::string folder =
      absl::StrCat(root == nullptr ? "/tmp" : root, "/ff_shards.XXXXXX");
  if (::mkdtemp(folder.data()) == nullptr) {
    state.SkipWithError("no temporary folder");
    return;
  }
  const auto specs = TransformerSpecs(state.range(0) * 8);
  auto writer = ShardedSafetensorsWriter::Create(folder, "model", specs, {},
                                                 state.range(0));
  const std::string data(64, 'x');
  for (const TensorSpec& spec : specs) {
    const size_t size = *CheckedSizeBytes(spec.dtype, spec.shape);
    (void)writer->Write(
        spec.name, absl::MakeConstSpan(
                       reinterpret_cast<const std::byte*>(data.data()), size));
  }
  if (!writer->Finish().ok()) state.SkipWithError("cannot write");
  for (auto _ : state) {
    const auto checkpoint = Checkpoint::Open(folder);
    if (!checkpoint.ok()) state.SkipWithError("the checkpoint was refused");
    benchmark::DoNotOptimize(checkpoint);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_OpenShards)->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
