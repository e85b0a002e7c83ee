#include "lib/flops/device_peaks.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<double> Bf16(absl::string_view name) {
  const auto peak = FindDevicePeak(BuiltinDevicePeaks(), name);
  if (!peak.ok()) return peak.status();
  return PeakTflops(*peak, MathType::kBf16);
}

// Names as drivers report them, each with its own figure.
TEST(FindDevicePeak, MatchesDriverNamesExactly) {
  const struct {
    const char* name;
    double bf16;
  } cases[] = {
      {"NVIDIA A100-SXM4-80GB", 312},
      {"NVIDIA A100-SXM4-40GB", 312},
      {"NVIDIA A100 80GB PCIe", 312},
      {"NVIDIA A800-SXM4-80GB", 312},
      {"NVIDIA H100 80GB HBM3", 989},
      {"NVIDIA H100 PCIe", 756},
      {"NVIDIA H100 NVL", 835.5},
      {"NVIDIA H800", 989},
      {"NVIDIA H200", 989},
      {"NVIDIA H200 NVL", 835.5},
      {"NVIDIA H20", 148},
      {"NVIDIA H20-3e", 148},
      {"NVIDIA GH200 480GB", 989},
      {"NVIDIA B200", 2250},
      {"NVIDIA B300 SXM6 AC", 2250},
      {"NVIDIA GB200", 2500},
      {"NVIDIA L4", 121},
      {"NVIDIA L40", 181},
      {"NVIDIA L40S", 362},
      {"NVIDIA L20", 119.5},
      {"NVIDIA A10", 125},
      {"NVIDIA A10G", 70},
      {"NVIDIA A40", 149.7},
      {"NVIDIA GeForce RTX 4090", 165.2},
      {"NVIDIA GeForce RTX 4090 D", 147},
      {"NVIDIA GeForce RTX 5090", 209.5},
      {"AMD Instinct MI300X", 1307.4},
  };
  for (const auto& [name, bf16] : cases) {
    EXPECT_THAT(Bf16(name), IsOkAndHolds(bf16)) << name;
  }
}

TEST(FindDevicePeak, SaysWhyADeviceIsUnknown) {
  const struct {
    const char* name;
    const char* reason;
  } cases[] = {
      {"NVIDIA A100-SXM4-80GB MIG 1g.10gb", "a MIG slice"},
      {"NVIDIA GeForce RTX 4090 Laptop GPU", "laptop boards"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "Max-Q"},
      {"NVIDIA RTX A1000", "nearest known name"},  // holds "A100"
      {"NVIDIA RTX A4000", "nearest known name"},  // holds "A40"
      {"NVIDIA L40G", "nearest known name"},
      {"NVIDIA GB10", ""},
      {"NVIDIA A100X", ""},
      {"", "not in the table"},
      {"80GB", "not in the table"},
  };
  for (const auto& [name, reason] : cases) {
    EXPECT_THAT(Bf16(name),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(reason)))
        << name;
  }
}

TEST(PeakTflops, HasARateForEachTypeOrSaysItIsUnknown) {
  ASSERT_OK_AND_ASSIGN(const DevicePeak h200,
                       FindDevicePeak(BuiltinDevicePeaks(), "NVIDIA H200"));
  EXPECT_THAT(PeakTflops(h200, MathType::kFp32), IsOkAndHolds(67.0));
  EXPECT_THAT(PeakTflops(h200, MathType::kTf32), IsOkAndHolds(494.5));
  EXPECT_THAT(PeakTflops(h200, MathType::kFp16), IsOkAndHolds(989.0));
  EXPECT_THAT(PeakTflops(h200, MathType::kFp8), IsOkAndHolds(1979.0));
  EXPECT_EQ(h200.memory_gb_per_s(), 4800);
  ASSERT_OK_AND_ASSIGN(const DevicePeak a100,
                       FindDevicePeak(BuiltinDevicePeaks(), "A100-SXM4-80GB"));
  EXPECT_THAT(PeakTflops(a100, MathType::kFp8),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no fp8 peak is known for A100")));
}

TEST(BuiltinDevicePeaks, EveryEntryHasSourceAndDate) {
  EXPECT_GE(BuiltinDevicePeaks().device_size(), 25);
  for (const DevicePeak& device : BuiltinDevicePeaks().device()) {
    EXPECT_FALSE(device.source().empty()) << device.board();
    EXPECT_EQ(device.date().size(), 10u) << device.board();
    EXPECT_GT(device.bf16_tflops(), 0) << device.board();
  }
}

TEST(ParseDevicePeaks, NamesLineAndFault) {
  EXPECT_THAT(ParseDevicePeaks("device {\n  bord: 1 }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device peaks:2:")));
  const std::string entry =
      R"(device { board: "X" name: "X 9" source: "s" date: "2026-01-01" })";
  EXPECT_THAT(ParseDevicePeaks(entry), IsOk());
  EXPECT_THAT(ParseDevicePeaks(entry + entry),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'X 9' names two entries")));
  EXPECT_THAT(ParseDevicePeaks(R"(device { board: "X" name: "X" })"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lacks a board, name, source or date")));
}

TEST(ParseMathType, ListsTheChoices) {
  EXPECT_THAT(ParseMathType("bf16"), IsOkAndHolds(MathType::kBf16));
  EXPECT_THAT(ParseMathType("int8"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected fp32, tf32, bf16, fp16 or fp8")));
}

}  // namespace
}  // namespace firstframe
