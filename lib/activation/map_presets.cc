#include "lib/activation/map_presets.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "lib/activation/map_texts.h"

namespace firstframe {
namespace {

// The first line, a comment, without its signs.
absl::string_view SummaryOf(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  absl::ConsumePrefix(&text, "# ");
  absl::string_view line = text.substr(0, text.find('\n'));
  absl::ConsumeSuffix(&line, ".");
  return line;
}

}  // namespace

const std::vector<MapPreset>& MapPresets() {
  static const auto* const presets = [] {
    auto* const all = new std::vector<MapPreset>{
        {"cosmos", {}, kCosmosMap},
        {"cosmos2_5", {}, kCosmos25Map},
        {"dreamx_world", {}, kDreamxWorldMap},
        {"flux2", {}, kFlux2Map},
        {"gen3c", {}, kGen3cMap},
        {"glm_image", {}, kGlmImageMap},
        {"hunyuan", {}, kHunyuanMap},
        {"hunyuan15", {}, kHunyuan15Map},
        {"hunyuan_gamecraft", {}, kHunyuanGamecraftMap},
        {"hyworld", {}, kHyworldMap},
        {"kandinsky5", {}, kKandinsky5Map},
        {"lingbotworld", {}, kLingbotworldMap},
        {"longcat", {}, kLongcatMap},
        {"ltx2", {}, kLtx2Map},
        {"matrixgame2", {}, kMatrixgame2Map},
        {"matrixgame3", {}, kMatrixgame3Map},
        {"minimax_h3", {}, kMinimaxH3Map},
        {"stable_audio", {}, kStableAudioMap},
        {"wan", {}, kWanMap},
    };
    for (MapPreset& preset : *all) preset.summary = SummaryOf(preset.text);
    return all;
  }();
  return *presets;
}

std::optional<MapPreset> FindMapPreset(absl::string_view name) {
  for (const MapPreset& preset : MapPresets()) {
    if (preset.name == name) return preset;
  }
  return std::nullopt;
}

}  // namespace firstframe
