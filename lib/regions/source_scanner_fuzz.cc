// Any bytes are scanned as every language, parsed as a registry and taken as a
// setting without a crash.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"
#include "lib/regions/region_textproto.h"
#include "lib/regions/source_scanner.h"

std::vector<std::string> FuzzSeeds() {
  return {"register_profiler_region(\n  name=\"a\")\n'''\nx.region(\"b\")'''#",
          "RegisterRegion({.name = \"a\"}); // FF_PROFILE_REGION(\"b\")\n/*",
          "FASTVIDEO_TORCH_PROFILE_REGIONS=\"a,-b*,[c]\"",
          "region { name: \"a\" alias: \"b\" }", "all,-training_*,!x,[a-"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const SourceLanguage language :
       {SourceLanguage::kPython, SourceLanguage::kCpp,
        SourceLanguage::kMarkdown, SourceLanguage::kSettings}) {
    for (const RegionMention& mention : ScanSource(text, language)) {
      FF_CHECK(mention.line >= 1 && !mention.name.empty());
    }
  }
  RegionRegistry registry;
  if (const auto regions = ParseRegionTextproto(text, "f"); regions.ok()) {
    for (const Region& region : *regions) {
      static_cast<void>(registry.Add(region));
    }
  }
  const RegionSelection selection =
      RegionSelection::Parse(text, RegionRegistry::Default());
  FF_CHECK(!selection.empty() || !selection.warnings().empty());
  static_cast<void>(selection.NeverEntered({"model_loading"}));
  return 0;
}
