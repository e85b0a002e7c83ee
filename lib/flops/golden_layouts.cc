#include "lib/flops/golden_layouts.h"

#include <utility>
#include <vector>

#include "lib/testing/temp_dir.h"

namespace firstframe::testing {

simdjson::dom::object LoadFlopsGolden(const std::string& name,
                                      simdjson::dom::parser& parser) {
  return parser.parse(ReadFile("testdata/flops/" + name)).get_object();
}

std::map<std::string, ModelLayout> LoadGoldenLayouts() {
  simdjson::dom::parser parser;
  std::map<std::string, ModelLayout> layouts;
  for (const auto& [model, tensors] : LoadFlopsGolden("layouts.json", parser)) {
    ModelLayout& layout = layouts[std::string(model)];
    for (const auto& [tensor, sizes] : tensors.get_object()) {
      std::vector<int64_t> shape;
      for (const simdjson::dom::element size : sizes.get_array()) {
        shape.push_back(size.get_int64());
      }
      layout.Add(absl::string_view(tensor.data(), tensor.size()),
                 std::move(shape));
    }
  }
  return layouts;
}

}  // namespace firstframe::testing
