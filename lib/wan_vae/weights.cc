#include "lib/wan_vae/weights.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {
namespace {

using Rename = std::pair<absl::string_view, absl::string_view>;

// Parts of a residual block: an nn.Sequential of norm, SiLU, conv, norm, SiLU,
// dropout, conv in the original.
constexpr Rename kResnetParts[] = {
    {".norm1.", ".residual.0."},       {".conv1.", ".residual.2."},
    {".norm2.", ".residual.3."},       {".conv2.", ".residual.6."},
    {".conv_shortcut.", ".shortcut."},
};

constexpr Rename kMidParts[] = {
    {"mid_block.resnets.0.", "middle.0."},
    {"mid_block.attentions.0.", "middle.1."},
    {"mid_block.resnets.1.", "middle.2."},
};

constexpr Rename kEnds[] = {
    {"conv_in.", "conv1."},
    {"norm_out.", "head.0."},
    {"conv_out.", "head.2."},
    {"down_blocks.", "downsamples."},
};

// "up_blocks.B.resnets.R.rest" and "up_blocks.B.upsamplers.0.rest" become one
// flat list.
std::string FlattenUpBlocks(absl::string_view rest,
                            const WanVaeConfig& config) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('.', 3));
  int64_t block = 0, inner = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &block) ||
      !absl::SimpleAtoi(parts[2], &inner)) {
    return absl::StrCat("up_blocks.", rest);
  }
  const int64_t resnets = config.num_res_blocks + 1;
  if (parts[1] == "upsamplers") inner = resnets;
  return absl::StrCat("upsamples.", block * (resnets + 1) + inner, ".",
                      parts[3]);
}

std::string RenameStart(absl::string_view rest,
                        absl::Span<const Rename> table) {
  for (const auto& [from, to] : table) {
    if (absl::ConsumePrefix(&rest, from)) return absl::StrCat(to, rest);
  }
  return std::string(rest);
}

std::string OriginalNameInside(absl::string_view rest,
                               const WanVaeConfig& config) {
  if (absl::ConsumePrefix(&rest, "up_blocks.")) {
    return FlattenUpBlocks(rest, config);
  }
  std::string name = RenameStart(rest, kMidParts);
  return name == rest ? RenameStart(rest, kEnds) : name;
}

bool IsLoadable(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

// A message of a whole checkpoint's faults stays readable: the first of each
// kind are named, the rest counted.
constexpr size_t kMostNamed = 400;

void AppendFaults(absl::string_view kind,
                  const std::vector<std::string>& faults,
                  std::vector<std::string>& message) {
  if (faults.empty()) return;
  std::string text = absl::StrCat(faults.size(), " ", kind, ": ");
  const size_t named = std::min(faults.size(), kMostNamed);
  absl::StrAppend(&text,
                  absl::StrJoin(faults.begin(), faults.begin() + named, ", "));
  if (named < faults.size()) {
    absl::StrAppend(&text, " and ", faults.size() - named, " more");
  }
  message.push_back(std::move(text));
}

}  // namespace

std::string OriginalName(absl::string_view diffusers_name,
                         const WanVaeConfig& config) {
  absl::string_view rest = diffusers_name;
  if (absl::ConsumePrefix(&rest, "quant_conv.")) {
    return absl::StrCat("conv1.", rest);
  }
  if (absl::ConsumePrefix(&rest, "post_quant_conv.")) {
    return absl::StrCat("conv2.", rest);
  }
  std::string prefix;
  for (absl::string_view side : {"encoder.", "decoder."}) {
    if (absl::ConsumePrefix(&rest, side)) prefix = std::string(side);
  }
  if (prefix.empty()) return std::string(diffusers_name);
  std::string name = absl::StrCat(prefix, OriginalNameInside(rest, config));
  for (const auto& [from, to] : kResnetParts) {
    const size_t at = name.find(from.data(), prefix.size(), from.size());
    if (at == std::string::npos) continue;
    name.replace(at, from.size(), to.data(), to.size());
    break;
  }
  return name;
}

absl::StatusOr<std::vector<int>> MatchParameters(
    const WanVaeConfig& config, const ModuleTree& tree,
    absl::Span<const NamedTensor> tensors) {
  absl::flat_hash_map<std::string, int> parameter_of;
  const int count = static_cast<int>(tree.parameters.size());
  for (int i = 0; i < count; ++i) {
    const std::string& name = tree.parameters[i].name;
    parameter_of.emplace(name, i);
    parameter_of.emplace(OriginalName(name, config), i);
  }
  std::vector<int> position(count, -1);
  std::vector<std::string> missing, unexpected, mis_shaped, twice, untyped;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    const NamedTensor& tensor = tensors[t];
    const auto found = parameter_of.find(tensor.name);
    if (found == parameter_of.end()) {
      unexpected.push_back(
          absl::StrCat(tensor.name, " ", ShapeToString(tensor.view.shape)));
      continue;
    }
    const ParameterSpec& spec = tree.parameters[found->second];
    int& slot = position[found->second];
    if (slot >= 0) {
      twice.push_back(
          absl::StrCat(tensor.name, " (also ", tensors[slot].name, ")"));
      continue;
    }
    slot = t;
    if (tensor.view.shape != spec.shape) {
      mis_shaped.push_back(
          absl::StrCat(tensor.name, " ", ShapeToString(tensor.view.shape),
                       " instead of ", ShapeToString(spec.shape)));
    }
    if (!IsLoadable(tensor.view.dtype)) {
      untyped.push_back(
          absl::StrCat(tensor.name, " ", DTypeName(tensor.view.dtype)));
    }
  }
  for (int i = 0; i < count; ++i) {
    if (position[i] >= 0) continue;
    missing.push_back(absl::StrCat(tree.parameters[i].name, " ",
                                   ShapeToString(tree.parameters[i].shape)));
  }
  std::vector<std::string> message;
  AppendFaults("missing", missing, message);
  AppendFaults("unexpected", unexpected, message);
  AppendFaults("mis-shaped", mis_shaped, message);
  AppendFaults("given twice", twice, message);
  AppendFaults("not F64, F32, F16 or BF16", untyped, message);
  if (!message.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tensors do not match the model: ", absl::StrJoin(message, "; ")));
  }
  return position;
}

}  // namespace firstframe
