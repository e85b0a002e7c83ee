// Fuzzes the shard index: whatever the bytes, a verdict that agrees with
// itself.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/safetensors/shard_index.h"

using firstframe::CheckShardIndex;
using firstframe::IndexVerdict;
using firstframe::Strictness;

std::vector<std::string> FuzzSeeds() {
  return {R"({"metadata":{"total_size":12,"x":[1,{"y":null}]},"weight_map":)"
          R"({"a.weight":"model-00001-of-00002.safetensors",)"
          R"("b\u00e9\n":"model-00002-of-00002.safetensors"}})",
          "{\n  \"weight_map\": {\n    \"a\": \"1.safetensors\"\n  }\n}\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const IndexVerdict strict = CheckShardIndex("i", text, Strictness::kStrict);
  const IndexVerdict lenient = CheckShardIndex("i", text, Strictness::kLenient);
  FF_CHECK(!strict.ok() || lenient.ok());
  for (const auto& entry : lenient.index.entries) {
    FF_CHECK(entry.file < lenient.index.files.size());
    FF_CHECK(entry.position < size);
  }
  for (const auto& name : lenient.index.files) {
    FF_CHECK(!name.empty() && name.find('/') == std::string::npos);
  }
  return 0;
}
