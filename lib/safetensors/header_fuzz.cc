// Fuzzes the header: whatever the bytes, a verdict comes back that agrees with
// itself.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/testing/conformance_cases.h"

using firstframe::CheckSafetensorsHeader;
using firstframe::HeaderVerdict;
using firstframe::SafetensorsTensor;
using firstframe::Strictness;

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (auto& each : firstframe::testing::ConformanceCases()) {
    if (each.bytes.size() <= 2000) seeds.push_back(std::move(each.bytes));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const HeaderVerdict strict =
      CheckSafetensorsHeader("f", file, size, Strictness::kStrict);
  const HeaderVerdict lenient =
      CheckSafetensorsHeader("f", file, size, Strictness::kLenient);
  FF_CHECK(!strict.ok() || lenient.ok());
  for (const auto& finding : strict.findings) {
    FF_CHECK(finding.position.has_value() && *finding.position <= size);
    FF_CHECK(!FindingMessage(finding).empty());
  }
  if (!lenient.ok()) return 0;
  uint64_t end = 0;
  for (const SafetensorsTensor& tensor : lenient.header.tensors) {
    FF_CHECK(tensor.begin == end);
    FF_CHECK(tensor.end >= tensor.begin);
    end = tensor.end;
  }
  FF_CHECK(end == lenient.header.data_size);
  FF_CHECK(lenient.header.data_offset + end <= size);
  return 0;
}
