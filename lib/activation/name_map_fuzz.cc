// A map, and behind the first NUL the names to map, one a line.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "lib/activation/map_presets.h"
#include "lib/activation/name_map.h"
#include "lib/base/check.h"

namespace firstframe {
namespace {

void ApplyMap(absl::string_view text, absl::string_view names) {
  const auto map = NameMap::Parse(text);
  if (!map.ok()) {
    FF_CHECK(map.status().message().size() < 2000);
    return;
  }
  for (const absl::string_view name : absl::StrSplit(names, '\n')) {
    (void)map->IsTargetAlone(name);
    const auto mapped = map->Apply(name);
    if (!mapped || mapped->has_none) continue;
    FF_CHECK(mapped->count >= 1 && mapped->index >= 0 &&
             mapped->index < mapped->count);
  }
}

}  // namespace
}  // namespace firstframe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\0');
  if (cut == absl::string_view::npos) {
    firstframe::ApplyMap(text, "blocks.3.attn1.to_q\nnorm_out");
  } else {
    firstframe::ApplyMap(text.substr(0, cut), text.substr(cut + 1));
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds = {
      "# a comment\nblocks\\.(\\d+)\\.attn\\.q => blocks.\\1.attn.to_qkv 0/3\n",
      "^norm1\\.(\\d+) out\\[0\\]$ => norms.\\1 out\n^drop$ => -\n- => ^add$\n",
      "r\"^blocks\\.(\\d+)\\.to_q\\.(.*)$\": (r\"blocks.\\1.to_qkv.\\2\", 0, "
      "3),\n",
      std::string("^(.*)$ => \\1\\0\n\0a\nb\xFF\n", 19),
  };
  for (const firstframe::MapPreset& preset : firstframe::MapPresets()) {
    if (preset.text.size() < 300) seeds.emplace_back(preset.text);
  }
  return seeds;
}
