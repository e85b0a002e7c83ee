#include "lib/startup/fingerprint.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/layout.h"
#include "lib/wan_vae/load_weights.h"

namespace firstframe {

absl::StatusOr<std::vector<std::string>> VaeFiles(
    const std::string& model_path) {
  FF_ASSIGN_OR_RETURN(const VaeComponent component,
                      FindVaeComponent(model_path));
  FF_ASSIGN_OR_RETURN(const CheckpointLayout layout,
                      FindCheckpoint(component.checkpoint));
  if (layout.index_path.empty()) return layout.files;
  // Only the index says which files belong to it.
  FF_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                      Checkpoint::Open(component.checkpoint));
  std::vector<std::string> files;
  for (const CheckpointFile& file : checkpoint.files()) {
    files.push_back(file.path);
  }
  return files;
}

std::string FingerprintCheckpoint(const Checkpoint& checkpoint,
                                  const WanVaeConfig& config) {
  std::string text = WanVaeConfigToJson(config);
  for (const CheckpointFile& file : checkpoint.files()) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    absl::StrAppend(&text, "\n", name, " ", file.identity.size_bytes);
    for (const SafetensorsTensor& tensor : file.header.tensors) {
      absl::StrAppend(&text, "\n", tensor.name, " ", DTypeName(tensor.dtype),
                      " ", ShapeToString(tensor.shape), " ", tensor.begin, " ",
                      tensor.end);
    }
  }
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace firstframe
