// Finds out what a model is from what a user has of it: a Diffusers or
// transformers config.json, an original Wan config, or tensor names and shapes.

#ifndef LIB_FLOPS_ARCHITECTURE_READER_H_
#define LIB_FLOPS_ARCHITECTURE_READER_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/flops/compat_model.h"
#include "lib/flops/model_layout.h"
#include "lib/flops/text_encoder_cost.h"
#include "lib/flops/transformer_config.h"
#include "lib/flops/wan_vae_cost.h"

namespace firstframe {

struct ModelDescription {
  std::string name;        // what the user named
  std::string class_name;  // "WanTransformer3DModel", or "unknown"
  std::variant<TransformerConfig, WanVaeCostConfig, TextEncoderConfig> config;
  // Known when tensors, or a published parameter count, are.
  std::optional<CompatModel> compat;
  // The text length that the class states and the original prices cross
  // attention at: `text_len` of Wan's own and VideoX-Fun's classes; 0: none.
  int64_t stated_text_tokens = 0;
  // What was assumed, in sentences for a report.
  std::vector<std::string> notes;

  const TransformerConfig* transformer() const {
    return std::get_if<TransformerConfig>(&config);
  }
  const WanVaeCostConfig* vae() const {
    return std::get_if<WanVaeCostConfig>(&config);
  }
  const TextEncoderConfig* text_encoder() const {
    return std::get_if<TextEncoderConfig>(&config);
  }
};

// Reads the text of a config.json; keys that are absent take the defaults of
// the class. `where` goes into errors. InvalidArgument when it is not JSON, or
// a size is not a positive number; Unimplemented for a class without a cost
// model, naming it and those that have one.
absl::StatusOr<ModelDescription> ReadModelConfig(absl::string_view json,
                                                 absl::string_view where);

// Infers the architecture from tensor names and shapes alone. A transformer of
// no known family becomes TransformerFamily::kUnknown with its parameter count,
// and a note says that only linear layers are priced. NotFound when there are
// no tensors.
absl::StatusOr<ModelDescription> ReadModelLayout(const ModelLayout& layout,
                                                 absl::string_view where);

}  // namespace firstframe

#endif  // LIB_FLOPS_ARCHITECTURE_READER_H_
