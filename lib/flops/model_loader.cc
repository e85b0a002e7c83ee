#include "lib/flops/model_loader.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status_macros.h"
#include "lib/flops/known_models.h"
#include "lib/safetensors/checkpoint.h"

namespace firstframe {
namespace {

namespace fs = std::filesystem;

// Configs are a few kilobytes; this stops a mistyped path to weights.
constexpr size_t kMaxConfigBytes = 16 << 20;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Pipes have no size: what they hold is read as far as a config may reach.
absl::StatusOr<std::string> ReadConfigText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot read ", path.string()));
  }
  std::string text;
  char block[65536];
  while (text.size() <= kMaxConfigBytes && file) {
    file.read(block, sizeof block);
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) {
    return absl::DataLossError(absl::StrCat("cannot read ", path.string()));
  }
  if (text.size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), ": over ", kMaxConfigBytes, " bytes, no model config"));
  }
  return text;
}

// By its name; what comes through a pipe can only be one.
bool IsConfig(const fs::path& path) {
  std::error_code error;
  if (fs::is_fifo(path, error)) return true;
  return !fs::is_directory(path, error) && path.extension() == ".json" &&
         !absl::EndsWith(path.string(), ".index.json");
}

absl::StatusOr<ModelLayout> ReadLayout(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  ModelLayout layout;
  for (const CheckpointEntry entry : checkpoint.entries()) {
    const SafetensorsTensor& tensor = checkpoint.tensor(entry);
    layout.Add(tensor.name, tensor.shape);
  }
  return layout;
}

bool HasSafetensors(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

absl::StatusOr<ModelDescription> LoadComponent(const fs::path& folder) {
  FF_ASSIGN_OR_RETURN(const std::string text,
                      ReadConfigText(folder / "config.json"));
  absl::StatusOr<ModelDescription> model =
      ReadModelConfig(text, (folder / "config.json").string());
  if (!HasSafetensors(folder)) return model;
  const absl::StatusOr<ModelLayout> layout = ReadLayout(folder.string());
  if (!layout.ok()) {
    // The config is enough; what is wrong with the weights is worth a note.
    if (model.ok()) {
      model->notes.push_back(
          absl::StrCat("weights were not read: ", layout.status().message()));
    }
    return model;
  }
  if (!model.ok() && absl::IsUnimplemented(model.status())) {
    return ReadModelLayout(*layout, folder.string());
  }
  if (model.ok()) {
    model->compat = CompatModelFromLayout(*layout, model->stated_text_tokens);
  }
  return model;
}

absl::StatusOr<std::vector<ModelDescription>> LoadPipeline(
    const fs::path& folder) {
  std::vector<ModelDescription> models;
  std::vector<std::string> left_out;
  // In the order in which a request runs them.
  for (const char* name : {"text_encoder", "text_encoder_2", "image_encoder",
                           "transformer", "transformer_2", "vae"}) {
    if (!Exists(folder / name / "config.json")) continue;
    absl::StatusOr<ModelDescription> model = LoadComponent(folder / name);
    if (absl::IsUnimplemented(model.status())) {
      left_out.push_back(name);
      continue;
    }
    if (!model.ok()) return model.status();
    model->name = name;
    models.push_back(*std::move(model));
  }
  if (models.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder.string(), ": no component with a cost model"));
  }
  if (!left_out.empty()) {
    models.back().notes.push_back(
        absl::StrCat("not in these figures, for want of a cost model: ",
                     absl::StrJoin(left_out, ", ")));
  }
  return models;
}

}  // namespace

absl::StatusOr<std::vector<ModelDescription>> LoadModels(
    const std::string& path) {
  std::vector<ModelDescription> models;
  if (!Exists(path)) {
    FF_ASSIGN_OR_RETURN(ModelDescription model, KnownModel(path));
    models.push_back(std::move(model));
    return models;
  }
  const fs::path location(path);
  std::error_code error;
  const bool is_folder = fs::is_directory(location, error);
  if (is_folder && Exists(location / "model_index.json")) {
    return LoadPipeline(location);
  }
  if (location.filename() == "model_index.json") {
    return LoadPipeline(location.has_parent_path() ? location.parent_path()
                                                   : fs::path("."));
  }
  if (is_folder && Exists(location / "config.json")) {
    FF_ASSIGN_OR_RETURN(ModelDescription model, LoadComponent(location));
    models.push_back(std::move(model));
  } else if (IsConfig(location)) {
    FF_ASSIGN_OR_RETURN(const std::string text, ReadConfigText(location));
    FF_ASSIGN_OR_RETURN(ModelDescription model, ReadModelConfig(text, path));
    models.push_back(std::move(model));
  } else {
    FF_ASSIGN_OR_RETURN(const ModelLayout layout, ReadLayout(path));
    FF_ASSIGN_OR_RETURN(ModelDescription model, ReadModelLayout(layout, path));
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace firstframe
