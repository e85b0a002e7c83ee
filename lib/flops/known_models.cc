#include "lib/flops/known_models.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/edit_distance.h"
#include "lib/base/status_macros.h"
#include "lib/flops/known_models_data.h"
#include "simdjson.h"

namespace firstframe {
namespace {

namespace dom = simdjson::dom;

// The parsed table and its parser, which owns the memory.
struct Table {
  dom::parser parser;
  dom::object models;
};

const Table& GetTable() {
  static const Table* const kTable = [] {
    auto* table = new Table;
    const auto error =
        table->parser.parse(std::string(kKnownModelsJson)).get(table->models);
    FF_CHECK(error == simdjson::SUCCESS);
    return table;
  }();
  return *kTable;
}

std::optional<CompatModel> ReadCompat(dom::object entry) {
  int64_t params;
  if (entry["params"].get(params) != simdjson::SUCCESS) return std::nullopt;
  CompatModel compat;
  compat.params = params;
  const auto width = [&](std::string_view key) {
    int64_t value = 0;
    FF_CHECK(entry["attn_widths"][key].get(value) == simdjson::SUCCESS);
    return value;
  };
  compat.widths = {width("self"), width("cross"), width("modules")};
  return compat;
}

}  // namespace

std::vector<std::string> KnownModelNames() {
  std::vector<std::string> names;
  for (const dom::key_value_pair pair : GetTable().models) {
    names.emplace_back(pair.key);
  }
  return names;
}

absl::StatusOr<ModelDescription> KnownModel(absl::string_view name) {
  dom::object entry;
  const std::string_view key(name.data(), name.size());
  if (GetTable().models[key].get(entry) != simdjson::SUCCESS) {
    const std::optional<std::string> nearest =
        NearestName(name, KnownModelNames());
    return absl::NotFoundError(absl::StrCat(
        "no model is called '", name, "'",
        nearest ? absl::StrCat("; did you mean '", *nearest, "'?") : ""));
  }
  dom::object config;
  FF_CHECK(entry["config"].get(config) == simdjson::SUCCESS);
  FF_ASSIGN_OR_RETURN(ModelDescription model,
                      ReadModelConfig(simdjson::minify(config), name));
  model.compat = ReadCompat(entry);
  std::string_view note;
  if (entry["note"].get(note) == simdjson::SUCCESS) {
    model.notes.emplace_back(note);
  }
  return model;
}

}  // namespace firstframe
