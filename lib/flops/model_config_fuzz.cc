// Whatever a config.json holds: it is refused, or it has a cost that is no
// negative number.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/flops_report.h"

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"_class_name":"WanTransformer3DModel","num_attention_heads":12,"num_layers":30,"ffn_dim":8960,"patch_size":[1,2,2],"added_kv_proj_dim":null})",
      R"({"_class_name":"WanModel","dim":1536,"num_heads":12,"num_layers":30,"ffn_dim":8960,"model_type":"i2v","text_len":512})",
      R"({"_class_name":"HunyuanVideoTransformer3DModel","mlp_ratio":4.0,"guidance_embeds":true})",
      R"({"_class_name":"CogVideoXTransformer3DModel","time_embed_dim":512})",
      R"({"_class_name":"LTXVideoTransformer3DModel","num_layers":2})",
      R"({"_class_name":"MochiTransformer3DModel","num_key_value_heads":3})",
      R"({"_class_name":"FluxTransformer2DModel","in_channels":64})",
      R"({"_class_name":"AutoencoderKLWan","dim_mult":[1,2,4,4],"temperal_downsample":[false,true,true],"is_residual":true,"patch_size":2})",
      R"({"architectures":["UMT5EncoderModel"],"d_model":64,"feed_forward_proj":"gated-gelu"})",
      R"({"architectures":["CLIPVisionModel"],"image_size":224,"patch_size":14})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto model = ReadModelConfig(text, "config.json");
  if (!model.ok()) return 0;
  FlopsRequest request;
  request.video = {.frames = 5, .height = 64, .width = 64};
  request.run.training = TrainingMode::kLora;
  request.run.lora_rank = 4;
  for (const bool encodes : {false, true}) {
    request.encodes = encodes;
    const auto report = BuildFlopsReport({*model}, request);
    if (!report.ok()) continue;
    for (const ComponentCost& component : report->components) {
      FF_CHECK(component.forward.TotalFlops() >= 0);
      FF_CHECK(component.run.hardware >= 0);
    }
  }
  return 0;
}
