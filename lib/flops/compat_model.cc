#include "lib/flops/compat_model.h"

#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace firstframe {
namespace {

constexpr int kProjections = 3;  // q, k, v
// In order of preference, as the original tries them.
constexpr std::array<std::array<absl::string_view, 3>, kProjections>
    kSeparateNames = {{{"q", "to_q", "q_proj"},
                       {"k", "to_k", "k_proj"},
                       {"v", "to_v", "v_proj"}}};
constexpr std::array<absl::string_view, 3> kFusedNames = {"qkv", "to_qkv",
                                                          "qkv_proj"};
constexpr absl::string_view kTextTowers[] = {"token_refiner",
                                             "context_refiner"};
constexpr double kAttentionCoreFactor = 4.0;

// Output widths of the linear children that could make a module attention.
struct Candidate {
  std::array<std::array<int64_t, 3>, kProjections> separate{};
  std::array<int64_t, 3> fused{};

  int64_t QueryWidth() const {
    int64_t query = 0;
    int found = 0;
    for (int projection = 0; projection < kProjections; ++projection) {
      for (const int64_t width : separate[projection]) {
        if (width == 0) continue;
        if (projection == 0) query = width;
        ++found;
        break;
      }
    }
    if (found == kProjections) return query;
    for (const int64_t width : fused) {
      if (width > 0 && width % 3 == 0) return width / 3;
    }
    return 0;
  }
};

// Splits "blocks.0.attn.to_q" into the module and its child.
std::pair<absl::string_view, absl::string_view> SplitLast(
    absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

void Note(absl::string_view child, int64_t width, Candidate& candidate) {
  for (int projection = 0; projection < kProjections; ++projection) {
    for (size_t i = 0; i < kSeparateNames[projection].size(); ++i) {
      if (child == kSeparateNames[projection][i]) {
        candidate.separate[projection][i] = width;
      }
    }
  }
  for (size_t i = 0; i < kFusedNames.size(); ++i) {
    if (child == kFusedNames[i]) candidate.fused[i] = width;
  }
}

bool IsTextTower(absl::string_view lowered) {
  for (const absl::string_view tower : kTextTowers) {
    if (absl::StrContains(lowered, tower)) return true;
  }
  return false;
}

}  // namespace

AttentionWidths CompatAttentionWidths(const ModelLayout& layout) {
  absl::flat_hash_map<std::string, Candidate> modules;
  for (const ModelLayout::Tensor& tensor : layout.tensors()) {
    absl::string_view name = tensor.name;
    // Only linear layers have an output width: two dimensions, output first.
    if (tensor.shape.size() != 2 || !absl::ConsumeSuffix(&name, ".weight")) {
      continue;
    }
    absl::ConsumeSuffix(&name, ".base_layer");  // wrapped by a LoRA adapter
    const auto [module, child] = SplitLast(name);
    Note(child, tensor.shape[0], modules[module]);
  }
  AttentionWidths widths;
  for (const auto& [module, candidate] : modules) {
    const std::string lowered = absl::AsciiStrToLower(module);
    if (IsTextTower(lowered)) continue;
    const int64_t query = candidate.QueryWidth();
    if (query == 0) continue;
    const bool is_cross = absl::StrContains(lowered, "cross") ||
                          SplitLast(lowered).second == "attn2";
    (is_cross ? widths.cross : widths.self) += query;
    ++widths.modules;
  }
  return widths;
}

double CompatModel::LinearFlops(int64_t tokens) const {
  return 2.0 * static_cast<double>(params) * static_cast<double>(tokens);
}

double CompatModel::AttentionFlops(int64_t tokens) const {
  if (widths.self == 0) return 0.0;
  const double n = static_cast<double>(tokens);
  double total =
      kAttentionCoreFactor * n * n * static_cast<double>(widths.self);
  if (text_tokens > 0) {
    total += kAttentionCoreFactor * n * static_cast<double>(text_tokens) *
             static_cast<double>(widths.cross);
  }
  return total;
}

CompatModel CompatModelFromLayout(const ModelLayout& layout,
                                  int64_t text_tokens) {
  CompatModel model;
  model.params = layout.Elements();
  model.widths = CompatAttentionWidths(layout);
  model.text_tokens = model.widths.self > 0 ? text_tokens : 0;
  return model;
}

TrainingCoefficients CompatTrainingCoefficients(
    const CompatTraining& training) {
  const bool is_full =
      training.params == 0 || static_cast<double>(training.trainable) >=
                                  0.5 * static_cast<double>(training.params);
  TrainingCoefficients result;
  result.model = is_full ? 3.0 : 2.0;
  result.hardware = result.model + (training.checkpointing ? 1.0 : 0.0);
  std::string attention = "attn omitted (disabled)";
  if (training.attention_modules > 0) {
    attention = absl::StrCat("attn from dims (", training.attention_modules,
                             " modules)");
  } else if (training.price_attention) {
    attention = "attn omitted (widths unreadable)";
  }
  result.reason =
      absl::StrFormat("%s, ckpt %s -> %gx/%gx, %s", is_full ? "full" : "lora",
                      training.checkpointing ? "on" : "off", result.model,
                      result.hardware, attention);
  if (training.coefficient) {
    result.model = *training.coefficient;
    result.hardware = *training.coefficient;
    absl::StrAppendFormat(&result.reason, ", overridden to %gx",
                          *training.coefficient);
  }
  return result;
}

}  // namespace firstframe
