// Whatever a table of peaks holds: it is refused, or its devices are found by
// each of their names and have rates that are no negative numbers.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/flops/device_peaks.h"

std::vector<std::string> FuzzSeeds() {
  return {
      "device { board: \"A\" name: \"A\" name: \"A 80GB\" bf16_tflops: 312 "
      "source: \"s\" date: \"2026-08-15\" note: \"n\" }",
      "# x\ndevice { board: \"B\" name: \"NVIDIA B MIG\" fp8_tflops: 1e3 "
      "memory_gb_per_s: 4800 source: \"s\" date: \"d\" }",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto peaks = ParseDevicePeaks(text);
  // A short input is a name for the real table, too.
  constexpr size_t kNameBytes = 128;
  if (size <= kNameBytes) {
    static_cast<void>(FindDevicePeak(BuiltinDevicePeaks(), text));
  }
  if (!peaks.ok()) return 0;
  for (const DevicePeak& device : peaks->device()) {
    for (const std::string& name : device.name()) {
      const auto found = FindDevicePeak(*peaks, name);
      FF_CHECK(found.ok() && found->board() == device.board());
    }
    for (const MathType math :
         {MathType::kFp32, MathType::kTf32, MathType::kBf16, MathType::kFp8}) {
      const auto rate = PeakTflops(device, math);
      FF_CHECK(!rate.ok() || *rate > 0);
    }
  }
  return 0;
}
