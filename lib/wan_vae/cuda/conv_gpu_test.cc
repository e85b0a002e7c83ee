// Every convolution kernel against the float64 sum, and the Hopper ones against
// the portable one, on shapes with edges: partial tiles and chunks, missing
// frames, residuals, fused norms.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/cuda/conv_case.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::IsOk;
using testing::ConvBench;
using testing::ConvCase;

const ConvCase kCases[] = {
    {"96to96 24x16", 24, 16, 96, 96},
    {"96to96 50x70 r n", 50, 70, 96, 96, 3, 3, Resample::kNone, false, true,
     true, 3, true},
    {"192to192 30x50 r n", 30, 50, 192, 192, 3, 3, Resample::kNone, false, true,
     true, 2},
    {"192to384 30x52", 30, 52, 192, 384},
    {"384to384 60x104", 60, 104, 384, 384},
    {"up 384to192 24x40", 24, 40, 384, 192, 1, 3, Resample::kUp},
    {"up 192to96 50x36 n", 50, 36, 192, 96, 1, 3, Resample::kUp, false, false,
     true},
    {"down 96to96 25x33", 25, 33, 96, 96, 1, 3, Resample::kDown},
    {"1x1 384to1152", 30, 52, 384, 1152, 1, 1},
    {"time 384to768", 30, 52, 384, 768, 3, 1},
    {"16to384", 12, 20, 16, 384},
    {"3to96", 20, 30, 3, 96},
    {"out 96to3", 50, 36, 96, 3, 3, 3, Resample::kNone, true},
    {"3to3", 7, 9, 3, 3, 3, 3, Resample::kNone, false, true, true},
    {"time 8to16 split", 9, 20, 8, 16, 3, 1, Resample::kNone, false, false,
     false, 2, false, true},
    {"time 3to6 split", 7, 9, 3, 6, 3, 1, Resample::kNone, false, false, false,
     1, true, true},
    {"time 384to768 split", 12, 20, 384, 768, 3, 1, Resample::kNone, false,
     false, false, 2, false, true},
    {"scores 384to700", 10, 70, 384, 700, 1, 1},
};

constexpr MathMode kModes[] = {MathMode::kFp32, MathMode::kTf32,
                               MathMode::kBf16};
// Of sums over the same inputs: kTf32 rounds each, kBf16 the stored result.
constexpr double kLimits[] = {2e-6, 6e-4, 4e-3};

double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);  // NaN when any element is
}

class ConvGpu : public ::testing::TestWithParam<MathMode> {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> count = GetRuntime().DeviceCount();
    if (!count.ok() || *count == 0) GTEST_SKIP() << count.status();
    ASSERT_OK_AND_ASSIGN(device_, GetRuntime().GetProperties(0));
    if (device_.compute_major < 8) GTEST_SKIP() << "older than 8.0";
  }

  bool HasWgmma() const {
    return device_.compute_major == 9 && device_.compute_minor == 0;
  }

  DeviceProperties device_;
};

TEST_P(ConvGpu, MatchesTheFloat64Sum) {
  const double limit = kLimits[static_cast<int>(GetParam())];
  ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create());
  for (const ConvCase& c : kCases) {
    SCOPED_TRACE(c.name);
    ASSERT_OK_AND_ASSIGN(
        ConvBench bench,
        ConvBench::Make(stream, c, GetParam(), device_.multiprocessors));
    std::vector<std::vector<float>> outs;
    std::vector<std::vector<float>> norms;
    for (const ConvKernelKind kind :
         {ConvKernelKind::kPortable, ConvKernelKind::kHopper}) {
      if (kind == ConvKernelKind::kHopper && !HasWgmma()) continue;
      ASSERT_THAT(bench.Prepare(kind), IsOk());
      ASSERT_THAT(bench.Launch(), IsOk());
      ASSERT_OK_AND_ASSIGN(outs.emplace_back(), bench.Out());
      EXPECT_LE(bench.SampledError(outs.back()), limit);
      if (c.norm) {
        ASSERT_OK_AND_ASSIGN(norms.emplace_back(), bench.NormOut());
      }
      // Same inputs, same bits.
      ASSERT_THAT(bench.Launch(), IsOk());
      ASSERT_OK_AND_ASSIGN(const std::vector<float> again, bench.Out());
      EXPECT_EQ(std::memcmp(again.data(), outs.back().data(),
                            again.size() * sizeof(float)),
                0);
    }
    if (outs.size() < 2) continue;
    EXPECT_LE(RelativeError(outs[1], outs[0]), limit);
    if (c.norm) {
      EXPECT_LE(RelativeError(norms[1], norms[0]), 2 * limit);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ConvGpu, ::testing::ValuesIn(kModes),
                         [](const auto& info) {
                           return std::string("Mode") +
                                  std::to_string(static_cast<int>(info.param));
                         });

}  // namespace
}  // namespace firstframe::cuda
