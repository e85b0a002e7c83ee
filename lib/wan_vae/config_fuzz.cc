// Fuzzes config.json: whatever the bytes, an error that names its source, or a
// configuration that is valid, builds, and survives being written and read
// again.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/module_tree.h"

using firstframe::WanVaeConfig;

std::vector<std::string> FuzzSeeds() {
  WanVaeConfig odd;
  odd.decoder_base_dim = 32;
  odd.dim_mult = {1, 3};
  odd.temporal_downsample = {true};
  odd.dropout = 0.5;
  return {firstframe::WanVaeConfigToJson(WanVaeConfig()),
          firstframe::WanVaeConfigToJson(odd),
          R"({"attn_scales":[],"patch_size":1,"scale_factor_spatial":8})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = firstframe::ParseWanVaeConfig(text, "source");
  if (!config.ok()) {
    FF_CHECK(config.status().message().substr(0, 8) == "source: ");
    return 0;
  }
  FF_CHECK(firstframe::ValidateWanVaeConfig(*config).ok());
  FF_CHECK(!firstframe::BuildModuleTree(*config).parameters.empty());
  const auto again = firstframe::ParseWanVaeConfig(
      firstframe::WanVaeConfigToJson(*config), "again");
  FF_CHECK(again.ok() && *again == *config);
  return 0;
}
