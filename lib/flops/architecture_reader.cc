#include "lib/flops/architecture_reader.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "simdjson.h"

namespace firstframe {
namespace {

namespace dom = simdjson::dom;

std::string_view ToStd(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

// Reads keys of one config object; remembers the first that has a wrong type.
class Config {
 public:
  Config(dom::object object, absl::string_view where)
      : object_(object), where_(where) {}

  // Absent and null keys give `otherwise`.
  int64_t Int(absl::string_view key, int64_t otherwise) {
    dom::element element;
    if (object_[ToStd(key)].get(element) != simdjson::SUCCESS ||
        element.is_null()) {
      return otherwise;
    }
    return ToInt(key, element);
  }
  bool Bool(absl::string_view key, bool otherwise) {
    bool value;
    return object_[ToStd(key)].get(value) == simdjson::SUCCESS ? value
                                                               : otherwise;
  }
  // A multiple of a width, from 0 to 1024.
  double Ratio(absl::string_view key, double otherwise) {
    constexpr double kMaxRatio = 1024;
    double value;
    if (object_[ToStd(key)].get(value) != simdjson::SUCCESS) return otherwise;
    if (value >= 0 && value <= kMaxRatio) return value;
    Fail(key, absl::StrCat("a number from 0 to ", kMaxRatio));
    return otherwise;
  }
  std::string String(absl::string_view key) {
    std::string_view value;
    return object_[ToStd(key)].get(value) == simdjson::SUCCESS
               ? std::string(value)
               : "";
  }
  bool Has(absl::string_view key) {
    dom::element element;
    return object_[ToStd(key)].get(element) == simdjson::SUCCESS;
  }
  // Numbers of an array, or `otherwise` when there is none.
  std::vector<int64_t> Ints(absl::string_view key,
                            std::vector<int64_t> otherwise) {
    dom::array array;
    if (object_[ToStd(key)].get(array) != simdjson::SUCCESS) return otherwise;
    std::vector<int64_t> values;
    for (const dom::element element : array) {
      values.push_back(ToInt(key, element));
    }
    return values;
  }
  std::vector<bool> Bools(absl::string_view key, std::vector<bool> otherwise) {
    dom::array array;
    if (object_[ToStd(key)].get(array) != simdjson::SUCCESS) return otherwise;
    std::vector<bool> values;
    for (const dom::element element : array) {
      bool value = false;
      if (element.get(value) != simdjson::SUCCESS) Fail(key, "true or false");
      values.push_back(value);
    }
    return values;
  }
  // The class: Diffusers' _class_name, or the first of transformers'
  // architectures.
  std::string ClassName() {
    const std::string name = String("_class_name");
    if (!name.empty()) return name;
    dom::array array;
    if (object_["architectures"].get(array) != simdjson::SUCCESS) return "";
    for (const dom::element element : array) {
      std::string_view value;
      if (element.get(value) == simdjson::SUCCESS) return std::string(value);
    }
    return "";
  }
  const absl::Status& status() const { return status_; }

 private:
  int64_t ToInt(absl::string_view key, dom::element element) {
    int64_t value = 0;
    constexpr int64_t kMaxSize = 1 << 24;  // keeps products within int64_t
    if (element.get(value) != simdjson::SUCCESS || value < 0 ||
        value > kMaxSize) {
      Fail(key, absl::StrCat("an integer from 0 to ", kMaxSize));
      return 0;
    }
    return value;
  }
  void Fail(absl::string_view key, absl::string_view expected) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat(where_, ": ", key, ": expected ", expected));
    }
  }

  dom::object object_;
  const std::string where_;
  absl::Status status_;
};

void ReadPatch(Config& config, int64_t default_patch, TransformerConfig& out) {
  const std::vector<int64_t> sizes = config.Ints("patch_size", {});
  if (sizes.size() == 3) {
    out.patch_t = sizes[0], out.patch_h = sizes[1], out.patch_w = sizes[2];
    return;
  }
  if (!sizes.empty()) return;  // other lengths fail validation elsewhere
  out.patch_h = config.Int("patch_size", default_patch);
  out.patch_w = out.patch_h;
  out.patch_t = config.Int("patch_size_t", 1);
}

TransformerConfig ReadWan(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kWan;
  out.heads = config.Int("num_attention_heads", 40);
  out.head_dim = config.Int("attention_head_dim", 128);
  out.layers = config.Int("num_layers", 40);
  out.ffn_dim = config.Int("ffn_dim", 13824);
  out.in_channels = config.Int("in_channels", 16);
  out.out_channels = config.Int("out_channels", 16);
  out.text_dim = config.Int("text_dim", 4096);
  out.time_dim = config.Int("freq_dim", 256);
  out.image_dim = config.Int("image_dim", 0);
  out.added_kv_dim = config.Int("added_kv_proj_dim", 0);
  out.patch_h = out.patch_w = 2;
  if (config.Has("patch_size")) ReadPatch(config, 2, out);
  out.default_text_tokens = 512;
  out.default_image_tokens = out.image_dim > 0 ? 257 : 0;
  return out;
}

// Wan's own repository, and VideoX-Fun: dim instead of heads times head size.
TransformerConfig ReadOriginalWan(Config& config, ModelDescription& model) {
  TransformerConfig out;
  out.family = TransformerFamily::kWan;
  const int64_t dim = config.Int("dim", 2048);
  out.heads = config.Int("num_heads", 16);
  out.head_dim = out.heads > 0 ? dim / out.heads : 0;
  out.layers = config.Int("num_layers", 32);
  out.ffn_dim = config.Int("ffn_dim", 8192);
  out.in_channels = config.Int("in_dim", config.Int("in_channels", 16));
  out.out_channels = config.Int("out_dim", 16);
  out.text_dim = config.Int("text_dim", 4096);
  out.time_dim = config.Int("freq_dim", 256);
  out.patch_h = out.patch_w = 2;
  if (config.Has("patch_size")) ReadPatch(config, 2, out);
  out.default_text_tokens = config.Int("text_len", 512);
  model.stated_text_tokens = out.default_text_tokens;
  if (config.String("model_type") == "i2v") {
    out.image_dim = 1280;
    out.added_kv_dim = dim;
    out.default_image_tokens = 257;
    model.notes.push_back(
        "model_type i2v is read as Wan 2.1, with a CLIP image embedding; Wan "
        "2.2 has none: pass --image_tokens=0 for it");
  }
  return out;
}

TransformerConfig ReadHunyuanVideo(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kHunyuanVideo;
  out.heads = config.Int("num_attention_heads", 24);
  out.head_dim = config.Int("attention_head_dim", 128);
  out.layers = config.Int("num_layers", 20);
  out.single_layers = config.Int("num_single_layers", 40);
  out.refiner_layers = config.Int("num_refiner_layers", 2);
  out.ffn_dim = static_cast<int64_t>(static_cast<double>(out.hidden_dim()) *
                                     config.Ratio("mlp_ratio", 4.0));
  out.in_channels = config.Int("in_channels", 16);
  out.out_channels = config.Int("out_channels", 16);
  out.text_dim = config.Int("text_embed_dim", 4096);
  out.pooled_dim = config.Int("pooled_projection_dim", 768);
  out.time_dim = 256;
  out.guidance = config.Bool("guidance_embeds", true);
  ReadPatch(config, 2, out);
  out.default_text_tokens = 256;
  return out;
}

TransformerConfig ReadCogVideoX(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kCogVideoX;
  out.heads = config.Int("num_attention_heads", 30);
  out.head_dim = config.Int("attention_head_dim", 64);
  out.layers = config.Int("num_layers", 30);
  out.ffn_dim = 4 * out.hidden_dim();
  out.in_channels = config.Int("in_channels", 16);
  out.out_channels = config.Int("out_channels", 16);
  out.text_dim = config.Int("text_embed_dim", 4096);
  out.time_dim = out.hidden_dim();
  out.time_embed_dim = config.Int("time_embed_dim", 512);
  ReadPatch(config, 2, out);
  out.default_text_tokens = config.Int("max_text_seq_length", 226);
  return out;
}

TransformerConfig ReadLtxVideo(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kLtxVideo;
  out.heads = config.Int("num_attention_heads", 32);
  out.head_dim = config.Int("attention_head_dim", 64);
  out.layers = config.Int("num_layers", 28);
  out.ffn_dim = 4 * out.hidden_dim();
  out.in_channels = config.Int("in_channels", 128);
  out.out_channels = config.Int("out_channels", 128);
  out.text_dim = config.Int("caption_channels", 4096);
  out.time_dim = 256;
  ReadPatch(config, 1, out);
  out.default_text_tokens = 128;
  return out;
}

TransformerConfig ReadMochi(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kMochi;
  out.heads = config.Int("num_attention_heads", 24);
  out.head_dim = config.Int("attention_head_dim", 128);
  out.layers = config.Int("num_layers", 48);
  out.context_dim = config.Int("pooled_projection_dim", 1536);
  // Two thirds of four times the width, for each half of a gated layer.
  out.ffn_dim = 4 * out.hidden_dim() * 2 / 3;
  out.context_ffn_dim = 4 * out.context_dim * 2 / 3;
  out.in_channels = config.Int("in_channels", 12);
  out.out_channels = config.Int("out_channels", out.in_channels);
  out.text_dim = config.Int("text_embed_dim", 4096);
  out.time_dim = config.Int("time_embed_dim", 256);
  ReadPatch(config, 2, out);
  out.default_text_tokens = config.Int("max_sequence_length", 256);
  return out;
}

TransformerConfig ReadFlux(Config& config) {
  TransformerConfig out;
  out.family = TransformerFamily::kFlux;
  out.heads = config.Int("num_attention_heads", 24);
  out.head_dim = config.Int("attention_head_dim", 128);
  out.layers = config.Int("num_layers", 19);
  out.single_layers = config.Int("num_single_layers", 38);
  out.ffn_dim = 4 * out.hidden_dim();
  out.in_channels = config.Int("in_channels", 64);
  out.out_channels = config.Int("out_channels", out.in_channels);
  out.text_dim = config.Int("joint_attention_dim", 4096);
  out.pooled_dim = config.Int("pooled_projection_dim", 768);
  out.time_dim = 256;
  out.guidance = config.Bool("guidance_embeds", false);
  ReadPatch(config, 1, out);
  out.default_text_tokens = 512;
  return out;
}

WanVaeCostConfig ReadWanVae(Config& config) {
  WanVaeCostConfig out;
  out.base_dim = config.Int("base_dim", 96);
  out.decoder_base_dim = config.Int("decoder_base_dim", out.base_dim);
  out.z_dim = config.Int("z_dim", 16);
  out.dim_mult = config.Ints("dim_mult", out.dim_mult);
  out.num_res_blocks = config.Int("num_res_blocks", 2);
  out.temporal_downsample =
      config.Bools("temperal_downsample", out.temporal_downsample);
  out.in_channels = config.Int("in_channels", 3);
  out.out_channels = config.Int("out_channels", 3);
  out.patch_size = config.Int("patch_size", 1);
  out.is_residual = config.Bool("is_residual", false);
  return out;
}

TextEncoderConfig ReadT5(Config& config) {
  TextEncoderConfig out;
  out.layers = config.Int("num_layers", 6);
  out.hidden_dim = config.Int("d_model", 512);
  out.attention_dim =
      SaturatingProduct({config.Int("num_heads", 8), config.Int("d_kv", 64)});
  out.ffn_dim = config.Int("d_ff", 2048);
  out.is_gated = absl::StartsWith(config.String("feed_forward_proj"), "gated");
  return out;
}

TextEncoderConfig ReadClip(Config& config, bool is_vision) {
  TextEncoderConfig out;
  out.layers = config.Int("num_hidden_layers", 12);
  out.hidden_dim = config.Int("hidden_size", is_vision ? 768 : 512);
  out.attention_dim = out.hidden_dim;
  out.ffn_dim = config.Int("intermediate_size", is_vision ? 3072 : 2048);
  if (is_vision) {
    out.image_size = config.Int("image_size", 224);
    out.patch_size = config.Int("patch_size", 32);
  }
  return out;
}

bool IsOneOf(absl::string_view name,
             std::initializer_list<absl::string_view> names) {
  for (const absl::string_view candidate : names) {
    if (name == candidate) return true;
  }
  return false;
}

// Returns false for a class without a model.
bool ReadByClass(Config& config, ModelDescription& model) {
  const absl::string_view name = model.class_name;
  if (IsOneOf(name,
              {"WanTransformer3DModel", "WanModel", "WanTransformer3DModel_S2V",
               "Wan2_2Transformer3DModel"})) {
    model.config =
        config.Has("dim") ? ReadOriginalWan(config, model) : ReadWan(config);
  } else if (name == "HunyuanVideoTransformer3DModel") {
    model.config = ReadHunyuanVideo(config);
  } else if (name == "CogVideoXTransformer3DModel") {
    model.config = ReadCogVideoX(config);
  } else if (name == "LTXVideoTransformer3DModel") {
    model.config = ReadLtxVideo(config);
  } else if (name == "MochiTransformer3DModel") {
    model.config = ReadMochi(config);
  } else if (name == "FluxTransformer2DModel") {
    model.config = ReadFlux(config);
  } else if (name == "AutoencoderKLWan") {
    model.config = ReadWanVae(config);
  } else if (IsOneOf(name, {"T5EncoderModel", "UMT5EncoderModel"})) {
    model.config = ReadT5(config);
  } else if (IsOneOf(name, {"CLIPTextModel", "CLIPTextModelWithProjection"})) {
    model.config = ReadClip(config, /*is_vision=*/false);
  } else if (IsOneOf(name,
                     {"CLIPVisionModel", "CLIPVisionModelWithProjection"})) {
    model.config = ReadClip(config, /*is_vision=*/true);
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ModelDescription> ReadModelConfig(absl::string_view json,
                                                 absl::string_view where) {
  dom::parser parser;
  dom::object object;
  const auto error = parser.parse(json.data(), json.size()).get(object);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": expected a JSON object: ", simdjson::error_message(error)));
  }
  Config config(object, where);
  ModelDescription model;
  model.name = std::string(where);
  model.class_name = config.ClassName();
  const bool is_known = ReadByClass(config, model);
  FF_RETURN_IF_ERROR(config.status());
  if (!is_known) {
    return absl::UnimplementedError(absl::StrCat(
        where, ": no cost model for class '", model.class_name,
        "'; there are models for WanTransformer3DModel, WanModel, "
        "HunyuanVideoTransformer3DModel, CogVideoXTransformer3DModel, "
        "LTXVideoTransformer3DModel, MochiTransformer3DModel, "
        "FluxTransformer2DModel, AutoencoderKLWan, T5EncoderModel, "
        "UMT5EncoderModel, CLIPTextModel and CLIPVisionModel; a safetensors "
        "file of it is priced by its linear layers"));
  }
  if (auto* transformer = std::get_if<TransformerConfig>(&model.config)) {
    transformer->class_name = model.class_name;
    transformer->kv_heads = config.Int("num_key_value_heads", 0);
    FF_RETURN_IF_ERROR(config.status());
    FF_RETURN_IF_ERROR(
        Annotate(ValidateTransformerConfig(*transformer), where));
  }
  if (auto* encoder = std::get_if<TextEncoderConfig>(&model.config)) {
    encoder->class_name = model.class_name;
  }
  return model;
}

}  // namespace firstframe
