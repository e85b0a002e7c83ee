// Whatever tensors a file lists: they are no model, or they have a cost. An
// input is lines of a tensor's name and its sizes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/flops_report.h"

std::vector<std::string> FuzzSeeds() {
  return {
      "patch_embedding.weight 32 16 1 2 2\n"
      "blocks.0.attn1.to_q.weight 32 32\nblocks.0.ffn.net.0.proj.weight 64 32\n"
      "condition_embedder.text_embedder.linear_1.weight 32 48\n"
      "condition_embedder.time_embedder.linear_1.weight 32 16\n"
      "proj_out.weight 64 32\n",
      "patch_embedding.weight 32 16 1 2 2\nblocks.0.self_attn.q.weight 32 32\n"
      "blocks.0.ffn.0.weight 64 32\ntext_embedding.0.weight 32 48\n"
      "time_embedding.0.weight 32 16\nhead.head.weight 64 32\n",
      "decoder.conv_in.weight 8 4 3 3 3\nencoder.conv_in.weight 8 3 3 3 3\n"
      "quant_conv.weight 8 8 1 1 1\n",
      "some.weight 100 10\nother.bias 10\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  ModelLayout layout;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    std::vector<int64_t> shape;
    for (size_t i = 1; i < words.size(); ++i) {
      int64_t dim = 0;
      // Headers hold no negative sizes.
      if (absl::SimpleAtoi(words[i], &dim) && dim >= 0) shape.push_back(dim);
    }
    layout.Add(words[0], std::move(shape));
  }
  auto model = ReadModelLayout(layout, "m.safetensors");
  if (!model.ok()) return 0;
  FlopsRequest request;
  request.video = {.frames = 5, .height = 64, .width = 64};
  const auto report = BuildFlopsReport({*std::move(model)}, request);
  if (!report.ok()) return 0;
  for (const ComponentCost& component : report->components) {
    FF_CHECK(component.forward.TotalFlops() >= 0);
  }
  return 0;
}
